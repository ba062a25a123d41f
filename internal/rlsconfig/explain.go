package rlsconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// Explanation is the reason for which a descriptor of a request meets a rule, or none.
type Explanation struct {
	// Rule is what Match returns.
	Rule *Rule
	// Choices are the descriptors of the configuration that the entries selected, in their order.
	// They end before the first entry that selected none.
	Choices []Choice
	// Reason is why there is no rule, and what would have matched. It is empty if there is one.
	Reason string
}

// Choice is a descriptor of the configuration that an entry selected.
type Choice struct {
	// Element is the text of the descriptor in Rule.Path.
	Element string
	// By is how it was selected: by the value, by a pattern, or by the key alone.
	By   string
	File string
	Line int
}

// Explain returns which rule a descriptor with these entries meets, as Match does, and why.
func (d *Domain) Explain(entries []Entry) Explanation {
	x := Explanation{Rule: d.Match(entries)}
	n := &d.root
	for i, e := range entries {
		next := n.keys[e.Key].explain(e.Value)
		if next.node == nil {
			x.Reason = n.missing(i, e) + d.elsewhere(entries)
			return x
		}
		choice := Choice{Element: e.Key, By: next.by, File: next.node.at.file, Line: next.node.at.line}
		if next.text != "" {
			choice.Element += "_" + next.text
		}
		x.Choices = append(x.Choices, choice)
		n = next.node
	}
	switch {
	case x.Rule != nil:
	case len(entries) == 0:
		x.Reason = "it has no entries"
	default:
		x.Reason = fmt.Sprintf("there is no limit at this depth: below it there %s", listKeys(n.keys)) + d.elsewhere(entries)
	}
	return x
}

// chosen is the node that a value selects, and how.
type chosen struct {
	node     *node
	by, text string
}

// explain returns what choose returns, and how.
func (a *alternatives) explain(value string) chosen {
	if a == nil {
		return chosen{}
	}
	n := a.choose(value)
	if n == nil || n == a.any {
		return chosen{n, "key", ""}
	}
	for i := range a.patterns {
		if p := &a.patterns[i]; p.node == n {
			return chosen{n, "pattern", p.text}
		}
	}
	return chosen{n, "value", value}
}

// missing returns why an entry, from 0, selects no descriptor below a node.
func (n *node) missing(i int, e Entry) string {
	a := n.keys[e.Key]
	switch {
	case a != nil:
		return fmt.Sprintf("entry %d: no value of key %s matches %s, and the key is not there without a value; there %s",
			i+1, limit.Quote(e.Key), limit.Quote(e.Value), listed("is", "are", a.texts()))
	case len(n.keys) == 0 && i == 0:
		return "the domain has no descriptors"
	case len(n.keys) == 0:
		return fmt.Sprintf("entry %d: nothing is below entry %d, and a limit holds requests with exactly its entries", i+1, i)
	}
	text := fmt.Sprintf("entry %d: there is no key %s; there %s", i+1, limit.Quote(e.Key), listKeys(n.keys))
	for _, key := range sortedKeys(n.keys) {
		if strings.EqualFold(key, e.Key) {
			return text + ", and upper case matters"
		}
	}
	if near := limit.Nearest(e.Key, sortedKeys(n.keys)); near != "" {
		return text + ": did you mean " + plain(near) + "?"
	}
	return text
}

// texts returns the values and patterns, sorted.
func (a *alternatives) texts() []string { return sortedKeys(a.values) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func listKeys(keys map[string]*alternatives) string {
	return listed("is key", "are keys", sortedKeys(keys))
}

// listed returns words behind a verb, shortened.
func listed(one, many string, words []string) string {
	const most = 8
	verb := many
	if len(words) == 1 {
		verb = one
	}
	var quoted []string
	for _, word := range words[:min(len(words), most)] {
		quoted = append(quoted, limit.Quote(word))
	}
	if len(words) > most {
		quoted = append(quoted, fmt.Sprintf("and %d more", len(words)-most))
	}
	return verb + " " + strings.Join(quoted, ", ")
}

// maxTried bounds the nodes that are tried for an explanation.
const maxTried = 10_000

// elsewhere names a rule that would apply if the selection were not final, or returns "".
func (d *Domain) elsewhere(entries []Entry) string {
	tried := 0
	var find func(n *node, entries []Entry) *Rule
	find = func(n *node, entries []Entry) *Rule {
		if tried++; tried > maxTried {
			return nil
		}
		if len(entries) == 0 {
			return n.rule
		}
		e := entries[0]
		a := n.keys[e.Key]
		if a == nil {
			return nil
		}
		candidates := []*node{a.values[e.Value]}
		for i := range a.patterns {
			if p := &a.patterns[i]; matches(p.parts, e.Value) {
				candidates = append(candidates, p.node)
			}
		}
		for _, c := range append(candidates, a.any) {
			if c == nil {
				continue
			}
			if r := find(c, entries[1:]); r != nil {
				return r
			}
		}
		return nil
	}
	r := find(&d.root, entries)
	if r == nil {
		return ""
	}
	return fmt.Sprintf("; %s of %s has these entries, but a selection is final, and a more exact descriptor was selected before", plain(r.Path), place{file: r.File, line: r.Line}.text())
}

// text returns the place as file:line.
func (p place) text() string {
	if p.line == 0 {
		return plain(p.file)
	}
	return fmt.Sprintf("%s:%d", plain(p.file), p.line)
}
