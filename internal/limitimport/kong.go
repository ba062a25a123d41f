package limitimport

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// Kong imports the rate-limiting plugins of a declarative configuration of Kong, as
// https://developer.konghq.com/plugins/rate-limiting/ describes them. Names of services and routes
// become conditions on the dimensions service and route, and consumers are tenants. The error is
// one of the syntax.
func Kong(content []byte) (Result, error) {
	root, err := readYAML(content)
	if kind := scalar(root, "kind"); kind != "" && isSet(root, "apiVersion") {
		return Result{}, fmt.Errorf("it is an object of Kubernetes, of kind %s, and no declarative configuration of Kong: deck gateway dump -o kong.yaml writes one of a running Kong", limit.Shorten(kind))
	}
	isMapping := err == nil && root != nil && root.Kind == yaml.MappingNode
	switch {
	case !isMapping && config.IsNginx(content):
		return Result{}, errNginx
	case err != nil:
		return Result{}, err
	case !isMapping:
		return Result{}, errNotKong
	}
	switch known := slices.ContainsFunc(kongFields, func(field string) bool { return isSet(root, field) }); {
	case !known && config.IsLimits(content):
		return Result{}, errors.New("it looks like a limits file: limitgate limits lint FILE")
	case !known:
		return Result{}, errNotKong
	}
	k := &kong{root: root, seen: map[*yaml.Node]bool{}, ids: map[condition]string{}, names: map[condition]bool{}, services: map[string]string{}, several: map[string]bool{}}
	for _, read := range []func(){func() { k.readIDs(root, 0) }, func() { k.readRoutes(root) }, func() { k.entity(root, nil, 0) }} {
		k.entities = 0
		if read(); k.entities > maxKongEntities {
			return Result{}, fmt.Errorf("it has more than %d entities: an alias may stand for what it is part of", maxKongEntities)
		}
	}
	k.addPlugins()
	if k.plugins == 0 && len(k.remarks) == 0 {
		k.remark(1, "there is no rate-limiting plugin")
	}
	return k.result(), nil
}

var errNotKong = errors.New("it is no declarative configuration of Kong, which has _format_version and one of services, routes, consumers and plugins: deck gateway dump -o kong.yaml writes one")

// kongFields are fields of which each configuration has one.
var kongFields = []string{"_format_version", "services", "routes", "consumers", "consumer_groups", "plugins"}

// kong is a configuration that is being read.
type kong struct {
	draft
	root     *yaml.Node
	seen     map[*yaml.Node]bool // those of _plugin_configs whose fields were looked at
	plugins  int
	entities int                  // that were looked at, at most maxKongEntities
	read     []kongPlugin         // those that are imported
	compared int                  // pairs of their limits
	looked   int                  // comparisons for remarks
	notes    []string             // remarks on the plugin that is being read, if its limits are imported
	ids      map[condition]string // the names of entities, by the dimension and the id
	asked    int                  // entities that are not there
	names    map[condition]bool   // all entities, by the dimension and the name
	services map[string]string    // the names of the services of routes, by the names of these
	several  map[string]bool      // the names of routes that several services have
	unnamed  *Remark              // about the outermost entity without a name around a plugin, or nil
}

// kongScope is a list of entities that have plugins, and the condition of these.
type kongScope struct {
	list, entity, name string // name is the field that the condition compares
	dimension          string
}

var kongScopes = []kongScope{
	{"services", "service", "name", "service"}, {"routes", "route", "name", "route"}, {"consumers", "consumer", "username", "tenant"},
}

const (
	// maxKongDepth bounds the entities in each other, which are a service, its routes and their
	// consumers: an alias may stand for what it is part of.
	maxKongDepth = 8
	// maxKongEntities bounds the entities that are looked at for their ids, for their routes and for their plugins: aliases
	// may repeat them.
	maxKongEntities = 200_000
)

// entity reads the plugins of an entity, and those of the entities in it.
func (k *kong) entity(n *yaml.Node, scope []condition, depth int) {
	if k.entities++; depth > maxKongDepth || k.entities > maxKongEntities {
		return
	}
	k.checkMerge(n)
	if key := repeated(resolved(n)); key != nil {
		k.remark(key.Line, "%s stands there twice: the first one alone is read", limit.Shorten(key.Value))
	}
	if plugins := value(n, "plugins"); plugins != nil && plugins.Kind != yaml.SequenceNode {
		k.remark(plugins.Line, "plugins is no list, which Kong wants: - name: rate-limiting: these are not imported")
	}
	k.remarkLists(n)
	for _, plugin := range items(n, "plugins") {
		k.plugin(plugin, scope)
	}
	for _, s := range kongScopes {
		for _, inner := range items(n, s.list) {
			k.inner(inner, s, scope, depth+1)
		}
	}
	for _, group := range items(n, "consumer_groups") {
		if plugins := items(group, "plugins"); len(plugins) > 0 {
			k.plugins += len(plugins)
			k.remark(group.Line, groupRemark)
		}
	}
}

// readIDs reads the names of entities, and of those with an id the names by that, "" of those without a name.
func (k *kong) readIDs(n *yaml.Node, depth int) {
	if k.entities++; depth > maxKongDepth || k.entities > maxKongEntities {
		return
	}
	for _, s := range kongScopes {
		for _, inner := range items(n, s.list) {
			if id, name := scalar(inner, "id"), scalar(inner, s.name); id != "" {
				k.ids[condition{s.dimension, id}] = name
			}
			k.names[condition{s.dimension, scalar(inner, s.name)}] = true
			k.readIDs(inner, depth+1)
		}
	}
}

const groupRemark = "plugins of consumer groups are not imported: make a plan of them, and list its tenants"

// inner reads an entity of a list.
func (k *kong) inner(n *yaml.Node, s kongScope, scope []condition, depth int) {
	name, unnamed := scalar(n, s.name), k.unnamed
	if name == "" && unnamed == nil {
		k.unnamed = &Remark{Line: n.Line, Text: fmt.Sprintf("the plugins of a %s without a %s%s are not imported: the %[2]s is a condition here, so give it one", s.entity, s.name, knownBy(n))}
	}
	k.entity(n, append(scope[:len(scope):len(scope)], condition{s.dimension, name}), depth)
	k.unnamed = unnamed
}

// knownBy returns a field by which people know an entity without a name, or "".
func knownBy(n *yaml.Node) string {
	for _, field := range []string{"custom_id", "url", "host", "id"} {
		if text := scalar(n, field); text != "" {
			return fmt.Sprintf(" (%s %s)", field, limit.Shorten(text))
		}
	}
	for _, field := range []string{"paths", "hosts"} {
		if all := items(n, field); len(all) > 0 {
			return fmt.Sprintf(" (%s %s)", field, limit.Shorten(resolved(all[0]).Value))
		}
	}
	return ""
}

// checkMerge remarks on a merge key, whose fields are not read.
func (k *kong) checkMerge(n *yaml.Node) {
	if merged := value(n, "<<"); merged != nil {
		k.remark(merged.Line, "a merge key (<<) is not read: write its fields out")
	}
}
