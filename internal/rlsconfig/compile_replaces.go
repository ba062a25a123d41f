package rlsconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// replacements are the names of the policies that others replace, by the name of the policy that
// replaces them.
type replacements map[string][]replacement

type replacement struct {
	at   place
	name string
}

// replaces sets the names that a rule replaces.
func (c *compiler) replaces(r *Rule, specs []replaceSpec) {
	for _, spec := range specs {
		at := spec.at.in("name")
		switch {
		case spec.name.broken:
		case spec.name.value == "":
			c.fail(at, "the name of the limit to replace is missing")
		case spec.name.value == r.Limit.Name:
			c.fail(at, "a limit cannot replace itself: remove %s", limit.Quote(spec.name.value))
		default:
			r.Replaces = append(r.Replaces, spec.name.value)
			c.wanted = append(c.wanted, wanted{r.Domain, replacement{at, spec.name.value}})
			if r.Limit.Name != "" {
				c.addReplacement(r, replacement{spec.at, spec.name.value})
			}
		}
	}
}

// wanted is a name that a rule of a domain replaces.
type wanted struct {
	domain string
	replacement
}

// maxNear bounds the names among which a misspelt one is looked for.
const maxNear = 1000

// checkNames warns of names to replace that no limit of the domain has.
func (c *compiler) checkNames() {
	type named struct{ domain, name string }
	known, names := map[named]bool{}, map[string][]string{} // names by domain
	for _, r := range c.config.limited {
		if key := (named{r.Domain, r.Limit.Name}); key.name != "" && !known[key] {
			known[key] = true
			names[r.Domain] = append(names[r.Domain], key.name)
		}
	}
	for _, w := range c.wanted {
		if known[named{w.domain, w.name}] {
			continue
		}
		meant := ""
		if own := names[w.domain]; len(own) <= maxNear && c.warnings < maxProblems {
			if meant = didYouMean(w.name, own, ""); meant != "" {
				meant = ": " + meant
			}
		}
		c.warn(w.at, "no limit of domain %s has the name %s, so nothing is replaced%s", limit.Quote(w.domain), limit.Quote(w.name), meant)
	}
}

func (c *compiler) addReplacement(r *Rule, replaced replacement) {
	if c.edges[r.Domain] == nil {
		c.edges[r.Domain] = replacements{}
	}
	c.edges[r.Domain][r.Limit.Name] = append(c.edges[r.Domain][r.Limit.Name], replaced)
}

// checkCircles reports policies that replace each other, directly or through others: none of them
// would apply to a request that meets all of them.
func (c *compiler) checkCircles(edges replacements) {
	const open, done = 1, 2
	state := map[string]int{}
	var path []string // from the first name to the present one
	var visit func(name string)
	visit = func(name string) {
		state[name] = open
		path = append(path, name)
		for _, replaced := range edges[name] {
			switch state[replaced.name] {
			case open:
				c.failCircle(replaced.at, path[slices.Index(path, replaced.name):])
			case done:
			default:
				visit(replaced.name)
			}
		}
		path = path[:len(path)-1]
		state[name] = done
	}
	for _, name := range slices.Sorted(maps.Keys(edges)) {
		if state[name] == 0 {
			visit(name)
		}
	}
}

// failCircle reports a circle of names.
func (c *compiler) failCircle(at place, names []string) {
	const most = 8 // names in the message
	var quoted []string
	for _, name := range names[:min(len(names), most)] {
		quoted = append(quoted, limit.Quote(name))
	}
	if len(names) > most {
		quoted = append(quoted, "...")
	}
	c.fail(at, "the limits %s replace each other: none of them would hold a request that meets all of them", strings.Join(quoted, ", "))
}
