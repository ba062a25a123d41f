package users

import (
	"slices"
	"strings"
)

// Groups are groups of commands. A user needs one of the groups of a command to send it.
type Groups uint8

// The groups.
const (
	// Check takes units and settles them.
	Check Groups = 1 << iota
	// Read shows limits and decisions without taking anything.
	Read
	// Dialects are the commands of other limiters.
	Dialects
	// Admin changes counters, limits and connections of others.
	Admin
	// Bypass lets requests pass the limits, with a token.
	Bypass

	all = Check | Read | Dialects | Admin | Bypass
)

// groupNames are the names in rules, in the order in which they are shown.
var groupNames = []struct {
	group Groups
	name  string
}{{all, "all"}, {Check, "check"}, {Read, "read"}, {Dialects, "dialects"}, {Admin, "admin"}, {Bypass, "bypass"}}

// parseGroups returns the groups of a name.
func parseGroups(name string) (g Groups, ok bool) {
	for _, known := range groupNames {
		if strings.EqualFold(name, known.name) {
			return known.group, true
		}
	}
	return 0, false
}

// String returns the groups as rules: -@all +@check, for example.
func (g Groups) String() string {
	if g == all {
		return "+@all"
	}
	text := "-@all"
	for _, name := range g.Names() {
		text += " +@" + name
	}
	return text
}

// Names returns the names of the groups.
func (g Groups) Names() (names []string) {
	for _, known := range groupNames[1:] {
		if g&known.group != 0 {
			names = append(names, known.name)
		}
	}
	return names
}

// pattern selects tenants, or keys of dialects: one by its name, or those that begin with it.
type pattern struct {
	name   string
	prefix bool
}

// match reports whether the pattern selects name. Bytes are compared.
func (p pattern) match(name string) bool {
	if p.prefix {
		return strings.HasPrefix(name, p.name)
	}
	return name == p.name
}

// patternSpecial are the characters of patterns in Redis, which \ makes ordinary.
const patternSpecial = `*?[]\`

// parsePattern parses a pattern, in which only the last character may be a *.
func parsePattern(text string) (p pattern, ok bool) {
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '*' && i == len(text)-1:
			p.prefix = true
		case c == '\\' && i+1 < len(text):
			i++
			name.WriteByte(text[i])
		case strings.IndexByte(patternSpecial, c) >= 0:
			return p, false
		default:
			name.WriteByte(c)
		}
	}
	p.name = name.String()
	return p, p.prefix || p.name != ""
}

// String returns the pattern as parsePattern parses it.
func (p pattern) String() string {
	var text strings.Builder
	for i := range len(p.name) {
		if strings.IndexByte(patternSpecial, p.name[i]) >= 0 {
			text.WriteByte('\\')
		}
		text.WriteByte(p.name[i])
	}
	if p.prefix {
		text.WriteByte('*')
	}
	return text.String()
}

// matchAny reports whether one of the patterns selects name.
func matchAny(patterns []pattern, name string) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p.match(name) })
}
