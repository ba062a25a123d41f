package limitimport

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Kong imports the rate-limiting plugins of a declarative configuration of Kong, as
// https://developer.konghq.com/plugins/rate-limiting/ describes them. Names of services and routes
// become conditions on the dimensions service and route, and consumers are tenants. The error is
// one of the syntax.
func Kong(content []byte) (Result, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		return Result{}, fmt.Errorf("read YAML: %w", err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return Result{}, errors.New("it is no declarative configuration of Kong: a mapping with _format_version")
	}
	k := &kong{}
	k.entity(doc.Content[0], nil, 0)
	if k.plugins == 0 {
		k.remark(1, "there is no rate-limiting plugin: nothing is imported")
	}
	return k.result(), nil
}

// kong is a configuration that is being read.
type kong struct {
	draft
	plugins int
}

// kongScopes are the lists of entities that have plugins, and what is a condition for them.
var kongScopes = []struct{ list, dimension string }{
	{"services", "service"}, {"routes", "route"}, {"consumers", "tenant"},
}

// maxKongDepth bounds the entities in each other, which are a service, its routes and their
// consumers: an alias may stand for what it is part of.
const maxKongDepth = 8

// entity reads the plugins of an entity, and those of the entities in it.
func (k *kong) entity(n *yaml.Node, scope []condition, depth int) {
	if depth > maxKongDepth {
		return
	}
	k.checkMerge(n)
	if plugins := value(n, "plugins"); plugins != nil && plugins.Kind != yaml.SequenceNode {
		k.remark(plugins.Line, "plugins is no list, which Kong wants: - name: rate-limiting: these are not imported")
	}
	for _, plugin := range items(n, "plugins") {
		k.plugin(plugin, scope)
	}
	for _, s := range kongScopes {
		for _, inner := range items(n, s.list) {
			name := scalar(inner, "name")
			if s.dimension == "tenant" {
				name = scalar(inner, "username")
			}
			k.entity(inner, append(scope[:len(scope):len(scope)], condition{s.dimension, name}), depth+1)
		}
	}
	for _, group := range items(n, "consumer_groups") {
		if len(items(group, "plugins")) > 0 {
			k.remark(group.Line, "plugins of consumer groups are not imported: make a plan of them, and list its tenants")
		}
	}
}

// kongWindow is a window of the plugin, and the period of its limit.
type kongWindow struct{ name, period string }

var kongWindows = []kongWindow{
	{"second", "s"}, {"minute", "m"}, {"hour", "h"}, {"day", "day"}, {"month", "month"}, {"year", "366d"},
}

// plugin adds the limits of a plugin.
func (k *kong) plugin(n *yaml.Node, scope []condition) {
	switch scalar(n, "name") {
	case "rate-limiting":
	case "rate-limiting-advanced", "response-ratelimiting", "ai-rate-limiting-advanced", "service-protection":
		k.remark(n.Line, "%s is not imported, only rate-limiting is", scalar(n, "name"))
		return
	default:
		return
	}
	k.plugins++
	if scalar(n, "enabled") == "false" {
		k.remark(n.Line, "a plugin that is not enabled is not imported")
		return
	}
	for _, s := range []struct{ key, dimension string }{{"service", "service"}, {"route", "route"}, {"consumer", "tenant"}} {
		if name := nameOf(n, s.key); name != "" {
			scope = append(scope[:len(scope):len(scope)], condition{s.dimension, name})
		}
	}
	config := value(n, "config")
	if !slices.ContainsFunc(kongWindows, func(w kongWindow) bool { return scalar(config, w.name) != "" }) {
		k.remark(n.Line, "a plugin is not imported: its config has none of second, minute, hour, day, month and year")
		return
	}
	k.checkMerge(n)
	k.checkMerge(config)
	by, ok := k.by(n.Line, config)
	if !ok {
		return
	}
	if path := scalar(config, "path"); scalar(config, "limit_by") == "path" && path != "" {
		scope = append(scope[:len(scope):len(scope)], condition{"path", path})
	}
	k.explainScope(n.Line, scope)
	if policy := scalar(config, "policy"); policy == "" || policy == "local" {
		k.remark(n.Line, "with policy local each node of Kong counts by itself; here all proxies of a store count together")
	}
	for _, w := range kongWindows {
		text := scalar(config, w.name)
		if text == "" {
			continue
		}
		count, err := strconv.ParseInt(text, 10, 64)
		if err != nil || count < 1 {
			k.remark(n.Line, "%s: %s is not imported: it is no number above zero", w.name, cut(text))
			continue
		}
		if w.name == "year" {
			k.remark(n.Line, "a year is 366 days here, and does not follow the calendar")
		}
		k.add(imported{
			id: kongID(scope, w.name), by: by, when: scope, group: w.name, rate: fmt.Sprintf("%d/%s", count, w.period),
			algorithm: "fixed_window", closed: scalar(config, "fault_tolerant") == "false",
		})
	}
}

// by returns the dimensions of limit_by, and reports whether they can be said.
func (k *kong) by(line int, config *yaml.Node) (by []string, ok bool) {
	switch what := scalar(config, "limit_by"); what {
	case "", "consumer":
		k.remarkOnce(line, "consumers are tenants: a request without a consumer, which Kong counts by its address, needs a tenant here")
		return []string{"tenant"}, true
	case "credential":
		k.remark(line, "services send DIM credential; a request without it is not counted, and in Kong counts by its address")
		return []string{"tenant", "credential"}, true
	case "ip":
		return []string{"ip"}, true
	case "service":
		k.remark(line, "services send DIM service; a request without it is not counted, and in Kong counts by its address")
		return []string{"service"}, true
	case "header":
		if scalar(config, "header_name") == "" {
			k.remark(line, "a plugin is not imported: limit_by: header needs header_name")
			return nil, false
		}
		name := word(strings.ToLower(scalar(config, "header_name")))
		k.remark(line, "services send DIM %s with the header; a request without it is not counted, and in Kong counts by its address", name)
		return []string{name}, true
	case "path":
		k.remark(line, "services send DIM path; requests of other paths are not counted, and in Kong count by their address")
		return []string{"path"}, true
	default:
		k.remark(line, "a plugin is not imported: limits do not count by %s", cut(what))
		return nil, false
	}
}

// explainScope remarks on the conditions of a plugin.
func (k *kong) explainScope(line int, scope []condition) {
	for _, c := range scope {
		if c.dimension != "tenant" && c.dimension != "path" {
			k.remark(line, "the plugin of %s %s is a condition: services send DIM %[1]s", c.dimension, cut(c.pattern))
		}
	}
	if len(scope) > 0 {
		k.remarkOnce(line, "of several plugins Kong runs one alone; here limits that count by other dimensions apply beside each other")
	}
}

// kongID returns the id of a limit: the names of its scope and its window.
func kongID(scope []condition, window string) string {
	var names []string
	for _, c := range scope {
		names = append(names, c.pattern)
	}
	return strings.Join(append(names, window), "-")
}

// checkMerge remarks on a merge key, whose fields are not read.
func (k *kong) checkMerge(n *yaml.Node) {
	if merged := value(n, "<<"); merged != nil {
		k.remark(merged.Line, "a merge key (<<) is not read: write its fields out")
	}
}

// value returns an entry of a mapping, or nil.
func value(n *yaml.Node, key string) *yaml.Node {
	if n = resolved(n); n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolved(n.Content[i+1])
		}
	}
	return nil
}

// resolved returns the node that an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// items returns a list of a mapping.
func items(n *yaml.Node, key string) []*yaml.Node {
	if list := value(n, key); list != nil && list.Kind == yaml.SequenceNode {
		return list.Content
	}
	return nil
}

// scalar returns a scalar of a mapping, or "".
func scalar(n *yaml.Node, key string) string {
	if v := value(n, key); v != nil && v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
		return v.Value
	}
	return ""
}

// nameOf returns the name of a referenced entity, which is a scalar or a mapping with a name.
func nameOf(n *yaml.Node, key string) string {
	if name := scalar(n, key); name != "" {
		return name
	}
	if name := scalar(value(n, key), "name"); name != "" {
		return name
	}
	return scalar(value(n, key), "username")
}
