package commands

import (
	"slices"
	"strings"
)

// compile builds the table from the rows.
func compile(rows []row, subs map[string][]row) map[string]*command {
	table := make(map[string]*command, len(rows))
	for _, r := range rows {
		c := newCommand(r, nil)
		for _, sub := range subs[r.name] {
			c.subs[sub.name] = newCommand(sub, c)
		}
		table[r.name] = c
		if subs[r.name] == nil {
			c.subs = nil
			continue
		}
		help := newCommand(helpRow(r.group), c)
		c.subs[help.name] = help
	}
	weighAll(table)
	return table
}

func newCommand(r row, container *command) *command {
	c := &command{row: r, full: r.name, arguments: parseUsage(r.usage), subs: map[string]*command{}}
	at := int64(1)
	if container != nil {
		c.full, c.subs, at = container.name+"|"+r.name, nil, 2
	}
	c.keys = keysOf(c, at)
	c.access = accessOf(c)
	return c
}

// keyRange is the positions of the arguments that are keys, as in COMMAND INFO; zeros for
// none.
type keyRange struct{ first, last, step int64 }

// keysOf declares the first argument of a command as a key if it is always present and
// names the tenant or the key of the request: a cluster client then sends the command to
// the node of its hash slot.
func keysOf(c *command, at int64) keyRange {
	if len(c.arguments) == 0 || c.group == groupCluster {
		return keyRange{}
	}
	a := &c.arguments[0]
	if a.kind == "oneof" && a.name == "id" { // or the word ID: any node can serve the request
		a = &a.within[0]
	}
	for a.kind == "block" && len(a.within) > 0 {
		a = &a.within[0]
	}
	if a.optional || a.token != "" || a.name != "tenant" && a.name != "key" && a.name != "id" {
		return keyRange{}
	}
	a.kind = "key"
	if a.multiple {
		return keyRange{at, -1, 1}
	}
	return keyRange{at, at, 1}
}

// of returns the keys among args, which include the command's name.
func (k keyRange) of(args [][]byte) [][]byte {
	if k.first == 0 || k.first >= int64(len(args)) {
		return nil
	}
	if k.last < 0 {
		return args[k.first:]
	}
	return args[k.first : k.last+1]
}

// sorted returns the table in the order of names.
func (h *Handler) sorted() []*command { return sorted(h.table) }

func (c *command) sortedSubs() []*command { return sorted(c.subs) }

func sorted(table map[string]*command) []*command {
	out := make([]*command, 0, len(table))
	for _, c := range table {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	return out
}

// names returns the full names of the commands and subcommands for which wanted is true.
func (h *Handler) names(wanted func(*command) bool) []string {
	var out []string
	for _, c := range h.sorted() {
		for _, c := range append([]*command{c}, c.sortedSubs()...) {
			if wanted(c) {
				out = append(out, c.full)
			}
		}
	}
	return out
}

// byFullName finds a command by its name, or a subcommand by its container's name, | and
// its own.
func (h *Handler) byFullName(name []byte) *command { return byFullName(h.table, name) }

func byFullName(table map[string]*command, name []byte) *command {
	container, sub, found := strings.Cut(string(name), "|")
	c := named(table, []byte(container))
	if !found || c == nil {
		return c
	}
	return named(c.subs, []byte(sub))
}
