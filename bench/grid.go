package bench

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// grid is a table. Its first columns are text, aligned left; the others are numbers,
// aligned right.
type grid struct {
	head []string
	left int // columns of text
	rows [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// widths returns the width of each column.
func (g *grid) widths() []int {
	widths := make([]int, len(g.head))
	for _, row := range append([][]string{g.head}, g.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// writeText writes the table for a terminal. paint may colour a cell, whose width it does
// not change.
func (g *grid) writeText(w io.Writer, paint func(cell, padded string) string) {
	widths := g.widths()
	for n, row := range append([][]string{g.head}, g.rows...) {
		var line strings.Builder
		for i, cell := range row {
			padded := pad(cell, widths[i], i >= g.left)
			if n > 0 {
				padded = paint(cell, padded)
			}
			line.WriteString(padded + "  ")
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// writeMarkdown writes the table for a page.
func (g *grid) writeMarkdown(w io.Writer) {
	fmt.Fprintf(w, "| %s |\n|", strings.Join(g.head, " | "))
	for i := range g.head {
		if i < g.left {
			fmt.Fprint(w, "---|")
		} else {
			fmt.Fprint(w, "---:|")
		}
	}
	fmt.Fprintln(w)
	for _, row := range g.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = strings.ReplaceAll(cell, "|", "\\|")
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}

func pad(cell string, width int, right bool) string {
	spaces := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
	if right {
		return spaces + cell
	}
	return cell + spaces
}
