package rlsconfig

import (
	"cmp"
	"slices"
)

// Descriptor is an element of descriptors in the configuration.
type Descriptor struct {
	Key, Value string
	// Pattern reports that Value has an asterisk, and Shared that all values that match it have
	// one counter.
	Pattern, Shared bool
	File            string
	Line            int
	// Rule is nil where only descriptors below this one have a limit.
	Rule *Rule
	// Below are the descriptors of the next level.
	Below []*Descriptor

	order int // of a pattern among those of its key
}

// Descriptors returns the descriptors of the first level, in the order of their files and lines.
// Descriptors with patterns of one key are in the order in which Match tries them.
func (d *Domain) Descriptors() []*Descriptor { return d.root.below() }

// Wins reports whether a request with a value that both descriptors match selects d and not other,
// which is another descriptor of its level with the same key.
func (d *Descriptor) Wins(other *Descriptor) bool {
	switch {
	case d.rank() != other.rank():
		return d.rank() < other.rank()
	default:
		return d.order < other.order
	}
}

// rank returns how early Match tries the descriptor among those of its key.
func (d *Descriptor) rank() int {
	switch {
	case d.Value == "":
		return 2
	case d.Pattern:
		return 1
	default:
		return 0
	}
}

// below returns the descriptors below a node.
func (n *node) below() []*Descriptor {
	var all []*Descriptor
	add := func(key, value string, n *node, pattern bool, order int) {
		all = append(all, &Descriptor{
			Key: key, Value: value, Pattern: pattern, Shared: n.shared, File: n.at.file, Line: n.at.line,
			Rule: n.rule, Below: n.below(), order: order,
		})
	}
	for key, a := range n.keys {
		for i := range a.patterns {
			add(key, a.patterns[i].text, a.patterns[i].node, true, i)
		}
		for value, n := range a.values {
			if !slices.ContainsFunc(a.patterns, func(p pattern) bool { return p.node == n }) {
				add(key, value, n, false, 0)
			}
		}
		if a.any != nil {
			add(key, "", a.any, false, 0)
		}
	}
	slices.SortFunc(all, func(a, b *Descriptor) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key), cmp.Compare(a.order, b.order), cmp.Compare(a.Value, b.Value))
	})
	return all
}
