package simulation

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// table is a table in Markdown, whose columns are aligned for reading it as text. Its
// first row is the head.
type table [][]string

func (t *table) row(cells ...string) { *t = append(*t, cells) }

func (t table) String() string {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for n, row := range t {
		for i, cell := range row {
			fmt.Fprintf(&text, "| %-*s ", widths[i], cell)
		}
		text.WriteString("|\n")
		if n > 0 {
			continue
		}
		for _, width := range widths {
			text.WriteString("|" + strings.Repeat("-", width+2))
		}
		text.WriteString("|\n")
	}
	return text.String()
}
