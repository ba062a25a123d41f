package config

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// indentSections reports plans and tenants that stand beside plans and tenants in place of below them, and moves
// them there, so that no other mistakes follow: default_plan would name a plan that is not there.
func (d *limitsDecoder) indentSections(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		return
	}
	empty := map[string]bool{}
	for _, section := range []string{"plans", "tenants"} {
		in := valueOf(root, section)
		empty[section] = in != nil && isNull(resolveAlias(in))
	}
	above := ""
	var rest []*yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if documentFields[key.Value] != nil {
			above = key.Value
		}
		section := sectionOf(root, key, value, empty, above)
		if section == "" {
			rest = append(rest, key, value)
			continue
		}
		if d.isJSON {
			d.fail(key, plain(key.Value), "unknown key; write it inside of %s", section)
		} else {
			d.fail(key, plain(key.Value), "unknown key; indent it below %s", section)
		}
		if in := resolveAlias(valueOf(root, section)); isNull(in) {
			*in = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: in.Line, Column: in.Column, Content: []*yaml.Node{key, value}}
		} else {
			in.Content = append(in.Content, key, value)
		}
	}
	root.Content = rest
}

// sectionOf returns the section that a key of a document belongs into, by its value, or without a value by the
// section above it, if that was empty. It returns "" for a key that belongs into none.
func sectionOf(root, key, value *yaml.Node, empty map[string]bool, above string) string {
	if key.Kind != yaml.ScalarNode || documentFields[key.Value] != nil || key.Value == "limits" || slices.Contains(limitKeys, key.Value) {
		return ""
	}
	holds := func(section string, fits bool) bool {
		in := valueOf(root, section)
		if in == nil || empty[section] {
			return in != nil && (fits || above == section && isNull(value))
		}
		return fits && resolveAlias(in).Kind == yaml.MappingNode && limit.Nearest(key.Value, documentKeys) == ""
	}
	value = resolveAlias(value)
	switch {
	case holds("plans", len(value.Content) > 0 && hasMappings(value)):
		return "plans"
	case holds("tenants", value.Kind == yaml.MappingNode && isTenant(value)):
		return "tenants"
	}
	return ""
}

// isTenant reports whether a mapping has the fields of a tenant alone.
func isTenant(n *yaml.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !tenantKeys[n.Content[i].Value] {
			return false
		}
	}
	return len(n.Content) > 0
}
