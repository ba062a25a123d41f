package config

import (
	"encoding/json"
	"fmt"
	"sort"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// itemLines numbers the limits and the overrides of parts, which have no lines, as if each were a line of one file, so that
// problems are in the order of the parts and name the item and the limit. It is not safe for concurrent use.
type itemLines struct {
	parts  map[string]json.RawMessage
	keys   []string // of the parts that were read
	starts []int    // by key: the line of the part as a whole; its elements have those that follow
	next   int
	names  map[int][]string // by key: of the elements of the parts that were looked up
	nodes  jsonNodes
}

func newItemLines(parts map[string]json.RawMessage) *itemLines {
	return &itemLines{parts: parts, next: headLine + 1, names: map[int][]string{}}
}

// headLine is the line of problems that are of no limit, such as a version that is missing: they are of the part with the rest.
const headLine = 1

// number gives lines to the node of a part and all below it.
func (p *itemLines) number(part string, n *yaml.Node) {
	p.keys, p.starts = append(p.keys, part), append(p.starts, p.next)
	setLine(n, p.next)
	p.next++
	elements(n, func(name, value *yaml.Node) {
		if name != nil {
			setLine(name, p.next)
		}
		setLine(value, p.next)
		p.next++
	})
}

func setLine(n *yaml.Node, line int) {
	n.Line = line
	for _, below := range n.Content {
		setLine(below, line)
	}
}

// elements calls each for the limits of a plan, the shared limits, or the overrides of a tenant, which have a name.
func elements(n *yaml.Node, each func(name, value *yaml.Node)) {
	if n.Kind == yaml.SequenceNode {
		for _, value := range n.Content {
			each(nil, value)
		}
	}
	if shared := valueOf(n, "shared"); shared != nil && n.Kind == yaml.MappingNode {
		elements(shared, each)
	}
	if overrides := valueOf(n, "overrides"); overrides != nil && n.Kind == yaml.MappingNode && overrides.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(overrides.Content); i += 2 {
			each(overrides.Content[i], overrides.Content[i+1])
		}
	}
}

// where names the part of a line, and the limit or the override in it.
func (p *itemLines) where(line int) string {
	i := sort.SearchInts(p.starts, line+1) - 1
	if i < 0 {
		return table.KeyShared
	}
	key := table.Printable(p.keys[i])
	names, known := p.names[i]
	if !known {
		names = p.namesOf(p.parts[p.keys[i]])
		p.names[i] = names
	}
	if at := line - p.starts[i] - 1; at >= 0 && at < len(names) {
		return key + ", " + names[at]
	}
	return key
}

// namesOf names the elements of a part.
func (p *itemLines) namesOf(part json.RawMessage) (names []string) {
	n, err := p.nodes.read(part)
	if err != nil {
		return nil
	}
	elements(n, func(override, value *yaml.Node) {
		id := valueOf(value, "id")
		switch {
		case override != nil:
			names = append(names, "override of "+limit.Quote(override.Value))
		case id != nil && id.Value != "":
			names = append(names, fmt.Sprintf("limit %d, %s", len(names)+1, limit.Quote(id.Value)))
		default:
			names = append(names, fmt.Sprintf("limit %d", len(names)+1))
		}
	})
	return names
}

// place sets where each problem is.
func (p *itemLines) place(problems []limit.Problem) {
	for i := range problems {
		problems[i].Where = p.where(problems[i].Line)
	}
}
