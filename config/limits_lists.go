package config

import (
	"cmp"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// The keys of lists of limits: the one of all lists, and the one of an entry of a plan that stands
// for the limits of a list.
const (
	listsKey   = "lists"
	includeKey = "include"
)

// maxIncluded is the maximum number of limits that includes stand for, all together: a short file
// could name a long list many times, and limits of one plan are compared with each other.
const maxIncluded = 1 << 14

// expandLists removes the lists of limits from a limits file, and puts aliases of their limits in
// the place of each `include: NAME`, so that a list counts as what aliases repeat.
func (d *limitsDecoder) expandLists(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		return
	}
	removed := false
	named := map[string]*yaml.Node{}
	var rest []*yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value != listsKey || removed { // a second one is a duplicate key
			rest = append(rest, key, value)
			continue
		}
		removed = true
		d.entries(value, listsKey, func(key, list *yaml.Node, field string) {
			if list = resolveAlias(list); list.Kind != yaml.SequenceNode {
				d.fail(list, field, "a list of limits belongs here: lines that begin with - id: NAME")
				return
			}
			for _, item := range list.Content {
				if isInclude(item) {
					d.fail(item, plain(field), "a list cannot include another: name both where they are included")
				}
			}
			list.Content = slices.DeleteFunc(list.Content, isInclude)
			named[key.Value] = list
		})
	}
	root.Content = rest
	d.expanded, d.listed, d.places = map[*yaml.Node]bool{}, map[string]bool{}, map[*yaml.Node][]int{}
	d.expandEach(root, named)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !d.listed[name] {
			d.warnings = append(d.warnings, limit.Problem{Line: named[name].Line, Field: plain(join(listsKey, name)), Text: "no plan includes it: its limits are not read"})
		}
	}
}

// expandEach replaces the includes of plans and of the shared limits.
func (d *limitsDecoder) expandEach(root *yaml.Node, named map[string]*yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		switch key, value := root.Content[i], resolveAlias(root.Content[i+1]); {
		case key.Value == "shared":
			d.expand(value, named, "shared")
		case key.Value == "plans" && value.Kind == yaml.MappingNode:
			for j := 0; j+1 < len(value.Content); j += 2 {
				d.expand(resolveAlias(value.Content[j+1]), named, join("plans", value.Content[j].Value))
			}
		}
	}
}

// expand replaces the includes of a list of limits.
func (d *limitsDecoder) expand(list *yaml.Node, named map[string]*yaml.Node, field string) {
	if d.expanded[list] || list.Kind != yaml.SequenceNode {
		return
	}
	d.expanded[list] = true // aliases of it need no second look
	if !slices.ContainsFunc(list.Content, isInclude) {
		return
	}
	var limits []*yaml.Node
	var places []int
	lines := map[string]int{} // of the includes of each list
	for i, item := range list.Content {
		if !isInclude(item) {
			limits, places = append(limits, item), append(places, i)
			continue
		}
		item = resolveAlias(item)
		name := resolveAlias(item.Content[1])
		from := named[name.Value]
		if name.Kind != yaml.ScalarNode {
			d.fail(item, plain(field), "one name belongs behind include: write - include: NAME for each list")
			continue
		}
		if from == nil {
			meant := cmp.Or(limit.DidYouMean(name.Value, slices.Sorted(maps.Keys(named))), "; a plan cannot be included")
			d.fail(item, plain(field), "there is no list %s among lists%s", Quote(name.Value), meant)
			continue
		}
		if line := lines[name.Value]; line > 0 {
			d.fail(item, plain(field), "list %s is included twice, on %s too: remove one of them", Quote(name.Value), d.doc.At(line))
			continue
		}
		if d.included += len(from.Content); d.included > maxIncluded {
			d.fail(item, plain(field), "lists stand for more than %d limits: give plans shorter lists, or tenants one plan instead of equal ones", maxIncluded)
			d.unreadable = true // the document is not compiled
			return
		}
		d.listed[name.Value], lines[name.Value] = true, item.Line
		limits = append(limits, aliasesOf(from, name)...)
		places = append(places, slices.Repeat([]int{i}, len(from.Content))...)
	}
	list.Content, d.places[list] = limits, places
}

// isInclude reports whether an entry of a list stands for another list.
func isInclude(n *yaml.Node) bool {
	n = resolveAlias(n)
	return n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == includeKey
}

// isMixed reports whether an entry of a list has an include beside other fields.
func isMixed(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && len(n.Content) > 2 && hasKey(n, includeKey)
}

// meansInclude reports whether an entry of a list has a misspelling of include alone.
func meansInclude(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2 || limitFields[n.Content[0].Value] != nil {
		return false
	}
	return limit.Nearest(n.Content[0].Value, append(slices.Collect(maps.Keys(limitFields)), includeKey)) == includeKey
}

// aliasesOf returns an alias of each limit of a list, at the place of the name that includes it.
func aliasesOf(list, name *yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for _, item := range list.Content {
		item = resolveAlias(item)
		if item.Anchor == "" {
			item.Anchor = name.Value
		}
		out = append(out, &yaml.Node{Kind: yaml.AliasNode, Value: name.Value, Alias: item, Line: name.Line, Column: name.Column})
	}
	return out
}
