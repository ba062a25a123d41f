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
	s := sections{nodes: map[string]*yaml.Node{}, empty: map[string]bool{}, named: namedPlans(root)}
	for _, section := range []string{"plans", "tenants"} {
		in := valueOf(root, section)
		s.nodes[section], s.empty[section] = in, in != nil && isNull(resolveAlias(in))
	}
	var rest []*yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if documentFields[key.Value] != nil {
			s.above = key.Value
		}
		section := s.of(key, resolveAlias(value))
		if section == "" {
			rest = append(rest, key, value)
			continue
		}
		if d.isJSON {
			d.fail(key, plain(key.Value), "unknown key; write it inside of %s", section)
		} else {
			d.fail(key, plain(key.Value), "unknown key; indent it below %s", section)
		}
		if in := resolveAlias(s.nodes[section]); isNull(in) {
			*in = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: in.Line, Column: in.Column, Content: []*yaml.Node{key, value}}
		} else {
			in.Content = append(in.Content, key, value)
		}
	}
	root.Content = rest
}

// sections finds the section that a key beside plans and tenants belongs into.
type sections struct {
	nodes map[string]*yaml.Node // the values of the sections, nil for one that is not there
	named map[string]bool       // plans that the file names elsewhere
	empty map[string]bool       // the sections without a value when the file was read
	above string                // the last key of a document in front of the present one
}

// of returns the section that a key of a document belongs into, by its value, or without a value by the section
// above it, if that was empty. It returns "" for a key that belongs into none.
func (s *sections) of(key, value *yaml.Node) string {
	if key.Kind != yaml.ScalarNode || documentFields[key.Value] != nil || key.Value == "limits" || slices.Contains(limitKeys, key.Value) || s.isForeign(key.Value, value) {
		return ""
	}
	for _, section := range []string{"plans", "tenants"} {
		if s.holds(section, key, value, fits(section, value)) {
			return section
		}
	}
	return ""
}

// fits reports whether a value has the form of those in a section.
func fits(section string, value *yaml.Node) bool {
	if section == "plans" {
		return len(value.Content) > 0 && hasMappings(value)
	}
	return value.Kind == yaml.MappingNode && isTenant(value)
}

// isForeign reports whether a key is more likely one of other software than the name of a plan or a tenant: the file does not name it as a
// plan, its value is no tenant, and the section above it is not one that is empty, and may have its value.
func (s *sections) isForeign(key string, value *yaml.Node) bool {
	below := s.empty[s.above] && (isNull(value) || fits(s.above, value))
	return foreignKeyAdvice(key) != "" && !s.named[key] && !below && !fits("tenants", value)
}

// namedPlans returns the plans that a file names as the default one, and as those of tenants.
func namedPlans(root *yaml.Node) map[string]bool {
	named := map[string]bool{}
	if plan := valueOf(root, "default_plan"); plan != nil {
		named[resolveAlias(plan).Value] = true
	}
	tenants := valueOf(root, "tenants")
	if tenants == nil || resolveAlias(tenants).Kind != yaml.MappingNode {
		return named
	}
	for entry := range slices.Chunk(resolveAlias(tenants).Content, 2) {
		if plan := valueOf(resolveAlias(entry[1]), "plan"); plan != nil {
			named[resolveAlias(plan).Value] = true
		}
	}
	return named
}

// holds reports whether a key belongs into a section. Fits reports whether its value has the form of those there.
func (s *sections) holds(section string, key, value *yaml.Node, fits bool) bool {
	in := s.nodes[section]
	if in == nil || s.empty[section] {
		return in != nil && (fits || s.above == section && isNull(value))
	}
	return fits && resolveAlias(in).Kind == yaml.MappingNode && limit.Nearest(key.Value, documentKeys) == ""
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
