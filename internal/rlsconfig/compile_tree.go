package rlsconfig

import (
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// insert adds a node below another one.
func (c *compiler) insert(parent *node, spec *descriptorSpec, n *node) {
	if parent.keys == nil {
		parent.keys = map[string]*alternatives{}
	}
	a := parent.keys[spec.key.value]
	if a == nil {
		a = &alternatives{}
		parent.keys[spec.key.value] = a
	}
	value := spec.value.value
	other := a.any
	if value != "" {
		other = a.values[value]
	}
	switch {
	case other != nil && value == "":
		c.fail(spec.at, "key %s without a value is there already, see %s: remove one of them", limit.Quote(spec.key.value), other.at.seenFrom(spec.at))
		return
	case other != nil:
		c.fail(spec.at, "key %s with value %s is there already, see %s: remove one of them", limit.Quote(spec.key.value), limit.Quote(value), other.at.seenFrom(spec.at))
		return
	case value == "":
		a.any = n
	default:
		if a.values == nil {
			a.values = map[string]*node{}
		}
		a.values[value] = n
		if strings.Contains(value, "*") {
			c.addPattern(a, pattern{value, strings.Split(value, "*"), n})
		}
	}
	if a.any != nil && a.all != nil && (a.any == n || a.all == n) {
		c.warn(a.any.at, "it never applies: the pattern of %s matches all values", a.all.at.seenFrom(a.any.at))
	}
}

// maxCompared bounds the pairs of patterns that are compared for warnings.
const maxCompared = 1_000_000

// addPattern adds a pattern, and warns if an earlier one matches every value that it matches.
func (c *compiler) addPattern(a *alternatives, p pattern) {
	for i := range a.patterns {
		if c.compared >= maxCompared {
			break
		}
		c.compared++
		// An asterisk of p is in no part of another pattern: if that matches the text of p, it
		// matches it with anything in place of the asterisks.
		if earlier := &a.patterns[i]; matches(earlier.parts, p.text) {
			c.warn(p.node.at, "it never applies: the pattern %s of %s comes first and matches all of its values", limit.Quote(earlier.text), earlier.node.at.seenFrom(p.node.at))
			break
		}
	}
	if a.all == nil && strings.Trim(p.text, "*") == "" {
		a.all = p.node
	}
	a.patterns = append(a.patterns, p)
}

// allKeys appends the keys of all levels below a node, sorted on each.
func (n *node) allKeys(keys []string) []string {
	for _, key := range sortedKeys(n.keys) {
		keys = append(keys, key)
		a := n.keys[key]
		for _, value := range sortedKeys(a.values) {
			keys = a.values[value].allKeys(keys)
		}
		if a.any != nil {
			keys = a.any.allKeys(keys)
		}
	}
	return keys
}
