package limitimport

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// write writes a limit.
func (l *imported) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s- {id: %s", indent, plain(l.id))
	fmt.Fprintf(b, ", by: [%s]", plains(l.by))
	for i, c := range l.when {
		begin := ", when: {"
		if i > 0 {
			begin = ", "
		}
		fmt.Fprintf(b, "%s%s: %s", begin, plain(c.dimension), quoted(c.pattern))
	}
	if len(l.when) > 0 {
		b.WriteString("}")
	}
	for _, field := range []struct{ name, value string }{{"group", plain(l.group)}, {"action", l.action}, {"rate", l.rate}, {"algorithm", l.algorithm}} {
		if field.value != "" {
			fmt.Fprintf(b, ", %s: %s", field.name, field.value)
		}
	}
	if l.burst > 0 {
		fmt.Fprintf(b, ", burst: %d", l.burst)
	}
	if len(l.replaces) > 0 {
		fmt.Fprintf(b, ", replaces: [%s]", plains(l.replaces))
	}
	if missing := cmp.Or(l.missing, l.passing()); missing != "" {
		fmt.Fprintf(b, ", missing: %s", missing)
	}
	if l.shadow {
		b.WriteString(", mode: shadow")
	}
	switch {
	case l.action != "":
		b.WriteString("}")
	case l.closed:
		b.WriteString(", on_error: closed}")
	default:
		b.WriteString(", on_error: open}")
	}
	if l.dry {
		b.WriteString(" # in shadow mode without --shadow, too")
	}
	b.WriteString("\n")
}

// line returns a limit as a line of a limits file.
func (l *imported) line() string {
	var b strings.Builder
	l.write(&b, "")
	return strings.TrimSpace(b.String())
}

// passing returns pass for a limit that counts by a dimension which requests may lack, so that it is said to be meant, or "".
func (l *imported) passing() string {
	for _, dim := range l.by {
		if l.action == "" && !limit.ReservedDim(dim) && !slices.ContainsFunc(l.when, func(c condition) bool { return c.dimension == dim }) {
			return "pass"
		}
	}
	return ""
}

// quoted returns text as a YAML scalar: JSON is YAML, but that YAML breaks lines at U+0085, and refuses other characters that
// are not printable.
func quoted(text string) string {
	content, _ := json.Marshal(text) // a string has no marshaler that fails
	var b strings.Builder
	for _, r := range string(content) {
		switch {
		case r < 0x7f || strconv.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// plain returns a word as a YAML scalar that is text: null is none without quotes.
func plain(word string) string {
	if strings.EqualFold(word, "null") {
		return quoted(word)
	}
	return word
}

// plains returns words as the items of a YAML list.
func plains(words []string) string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, plain(w))
	}
	return strings.Join(out, ", ")
}
