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
	// The part that was looked up last, as a large one may have many problems.
	nodes jsonNodes
	last  int // its index in keys
	node  *yaml.Node
}

func newItemLines(parts map[string]json.RawMessage) *itemLines {
	return &itemLines{parts: parts, next: 1, last: -1}
}

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
		return "a table" // a problem of none of its items
	}
	key := table.Printable(p.keys[i])
	if i != p.last {
		n, err := p.nodes.read(p.parts[p.keys[i]])
		if err != nil {
			return key
		}
		p.last, p.node = i, n
	}
	at, name := line-p.starts[i], ""
	elements(p.node, func(override, value *yaml.Node) {
		if at--; at != 0 {
			return
		}
		id := valueOf(value, "id")
		switch {
		case override != nil:
			name = ", override of " + limit.Quote(override.Value)
		case id != nil:
			name = fmt.Sprintf(", limit %d, %s", line-p.starts[i], limit.Quote(id.Value))
		default:
			name = fmt.Sprintf(", limit %d", line-p.starts[i])
		}
	})
	return key + name
}

// place sets where each problem is.
func (p *itemLines) place(problems []limit.Problem) {
	for i := range problems {
		problems[i].Where = p.where(problems[i].Line)
	}
}
