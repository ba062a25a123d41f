package rlsconfig

import "strings"

// node is a descriptor of the configuration in the tree of its domain.
type node struct {
	at     place
	rule   *Rule // nil where only descriptors below it have a limit
	shared bool  // all values have one counter
	keys   map[string]*alternatives
}

// alternatives are the descriptors of one level that have the same key.
type alternatives struct {
	values   map[string]*node // by their value as written: patterns are among them
	patterns []pattern        // in the order of the file
	any      *node            // without a value
	all      *node            // the first pattern that matches all values
}

// pattern is a value with asterisks.
type pattern struct {
	text  string
	parts []string // between the asterisks
	node  *node
}

// Match returns the rule that a descriptor with these entries meets, or nil. Each entry selects
// among the descriptors of its level with its key: the one with its value, or else the first
// pattern that matches its value, or else the one without a value. The selection is final, even
// if the next entry finds nothing below it. The rule is that of the last entry.
func (d *Domain) Match(entries []Entry) *Rule {
	n := &d.root
	for i := range entries {
		a := n.keys[entries[i].Key]
		if a == nil {
			return nil
		}
		if n = a.choose(entries[i].Value); n == nil {
			return nil
		}
	}
	return n.rule
}

// choose returns the descriptor for a value, or nil.
func (a *alternatives) choose(value string) *node {
	if n := a.values[value]; n != nil {
		return n
	}
	for i := range a.patterns {
		if matches(a.patterns[i].parts, value) {
			return a.patterns[i].node
		}
	}
	return a.any
}

// matches reports whether value consists of the parts in their order, with any bytes between
// them.
func matches(parts []string, value string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(value) < len(first)+len(last) || !strings.HasPrefix(value, first) || !strings.HasSuffix(value, last) {
		return false
	}
	value = value[len(first) : len(value)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(value, part)
		if i < 0 {
			return false
		}
		value = value[i+len(part):]
	}
	return true
}
