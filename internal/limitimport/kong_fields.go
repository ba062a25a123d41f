package limitimport

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// kongPluginFields are the fields of a plugin, with those of decK, which begin with _.
// Source: https://developer.konghq.com/gateway/entities/plugin/
var kongPluginFields = strings.Fields("name id instance_name enabled config service route consumer consumer_group protocols tags ordering partials condition run_on created_at updated_at ws_id cache_key _config _comment _ignore")

// remarkFields remarks on a field of a plugin that Kong does not know, by which a condition may be lost, and reports whether there
// is one.
func (k *kong) remarkFields(n *yaml.Node) (unknown bool) {
	of := resolved(n)
	for i := 0; of != nil && of.Kind == yaml.MappingNode && i+1 < len(of.Content); i += 2 {
		key := of.Content[i]
		if slices.Contains(kongPluginFields, key.Value) || key.Value == "<<" { // which checkMerge has
			continue
		}
		meant := question(nearest(key.Value, kongPluginFields))
		if slices.ContainsFunc(kongWindows, func(w kongWindow) bool { return w.name == strings.TrimPrefix(key.Value, "config.") }) {
			meant = ": write it inside of config"
		}
		k.remark(key.Line, "a plugin is not imported: Kong has no field %s of a plugin%s", limit.Shorten(key.Value), meant)
		return true
	}
	return false
}

// configOf returns the config of a plugin, with the fields of its _config that it has not, and reports whether there is one of that
// name. Source: https://developer.konghq.com/deck/gateway/deduplicate/
func (k *kong) configOf(n *yaml.Node) (config *yaml.Node, ok bool) {
	config = value(n, "config")
	name := scalar(n, "_config")
	if name == "" {
		return config, true
	}
	common := value(value(k.root, "_plugin_configs"), name)
	if common == nil || common.Kind != yaml.MappingNode {
		k.remark(n.Line, "a plugin is not imported: _plugin_configs has no %s, which its _config names", limit.Shorten(name))
		return nil, false
	}
	if !k.seen[common] {
		k.seen[common] = true
		k.remarkTypos(common)
	}
	merged := &yaml.Node{Kind: yaml.MappingNode, Line: n.Line}
	if config != nil && config.Kind == yaml.MappingNode {
		merged.Content, merged.Line = slices.Clone(config.Content), config.Line
	}
	for i := 0; i+1 < len(common.Content); i += 2 {
		if value(config, common.Content[i].Value) == nil {
			merged.Content = append(merged.Content, common.Content[i], common.Content[i+1])
		}
	}
	return merged, true
}

// remarkLists remarks on lists of an entity that are none, or have another name.
func (k *kong) remarkLists(n *yaml.Node) {
	of := resolved(n)
	for i := 0; of != nil && of.Kind == yaml.MappingNode && i+1 < len(of.Content); i += 2 {
		if key := of.Content[i]; key.Value != "plugins" && nearest(key.Value, []string{"plugins"}) != "" {
			k.remark(key.Line, "%s is not known, and not imported; did you mean plugins?", limit.Shorten(key.Value))
		}
	}
	for _, s := range kongScopes {
		if list := value(n, s.list); list != nil && list.Kind == yaml.MappingNode {
			k.remark(list.Line, "%s is no list, which Kong wants: - %s: NAME: these are not imported", s.list, s.name)
		}
	}
}

// remarkProtocols remarks on a plugin for some protocols alone.
func (k *kong) remarkProtocols(n *yaml.Node) {
	var of []string
	for _, item := range items(n, "protocols") {
		of = append(of, resolved(item).Value)
	}
	if len(of) > 0 && !slices.Contains(of, "http") && !slices.Contains(of, "https") {
		k.note("the plugin is for " + limit.Shorten(strings.Join(of, ", ")) + " alone, and its limits for all requests that services ask about")
	}
}
