package commands

import (
	"strings"
	"testing"
)

// hint formats arguments as redis-cli does, from the reply of COMMAND DOCS alone.
func hint(args []argument, between string) string {
	out := make([]string, len(args))
	for i, a := range args {
		text := a.name
		switch a.kind {
		case "pure-token":
			text = ""
		case "oneof":
			text = hint(a.within, " | ")
		case "block":
			text = hint(a.within, " ")
		}
		again := text
		text = strings.TrimSpace(a.token + " " + text)
		if a.multipleToken {
			again = text
		}
		if a.multiple {
			text += " [" + again + " ...]"
		}
		if a.optional {
			text = "[" + text + "]"
		}
		out[i] = text
	}
	return strings.Join(out, between)
}

// TestUsageIsReadWhole: the hint that redis-cli shows for the documented arguments of a
// command is its usage.
func TestUsageIsReadWhole(t *testing.T) {
	read := 0
	for _, c := range newTable() {
		for _, c := range append([]*command{c}, c.sortedSubs()...) {
			if got := hint(c.arguments, " "); got != c.usage {
				t.Errorf("%s: read as %q, written as %q", c.full, got, c.usage)
			}
			read += len(c.arguments)
		}
	}
	if read < 50 {
		t.Errorf("only %d arguments", read)
	}
}

// TestUsageOfOddForms: a malformed usage does not hang, and appears in the hint.
func TestUsageOfOddForms(t *testing.T) {
	for _, usage := range []string{"[", "]", "a ] b", "a | | b", "...", "[...]", "[a [b ...]]"} {
		if got := hint(parseUsage(usage), " "); got == usage {
			t.Errorf("%q is taken for a usage", usage)
		}
	}
}

// TestKeys: a cluster client finds the tenant or the key, and no key where there is none
// to route by.
func TestKeys(t *testing.T) {
	h := NewHandler(Options{})
	for name, want := range map[string]keyRange{
		"rl.check": {1, 1, 1}, "rl.explain": {1, 1, 1}, "rl.reset": {1, 1, 1}, "cl.throttle": {1, 1, 1}, "gcra": {1, 1, 1}, "throttle": {1, 1, 1},
		"watch": {1, -1, 1}, "memory|usage": {2, 2, 1},
		"rl.help": {}, "rl.limits": {}, "rl.config": {}, "ping": {}, "cluster|keyslot": {}, "client|kill": {}, "client": {},
	} {
		if got := h.byFullName([]byte(name)).keys; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true},
		{"", "", true},
		{"", "a", false},
		{"a*c", "abbc", true},
		{"a*c", "abb", false},
		{"A?C", "abc", true},
		{"a?", "a", false},
		{"[ab]c", "bc", true},
		{"[^ab]c", "bc", false},
		{"[^ab]c", "cc", true},
		{"[z-a]", "m", true},
		{"[a", "a", true},
		{"[", "a", false},
		{"[]a", "a", false},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`[\]]`, "]", true},
		{`a\`, `a\`, true},
		{"*a*b*", "xxaxxbxx", true},
		{"**", "x", true},
		{"c*/", "c/", true},
	} {
		if got := glob([]byte(test.pattern), test.text); got != test.want {
			t.Errorf("glob(%q, %q) = %v", test.pattern, test.text, got)
		}
	}
	// Every star could match anywhere: backtracking beyond the last star would never end.
	if glob([]byte(strings.Repeat("a*", 1000)+"b"), strings.Repeat("a", 10000)) {
		t.Error("matched")
	}
}
