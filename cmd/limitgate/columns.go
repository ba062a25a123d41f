package main

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	blockGap    = "  "   // between the values of a row in one line
	blockIndent = "    " // before the lines of a row but the first one
)

// printColumns prints rows in columns; the first row has the names of the columns. On a terminal that is too narrow
// for them, it prints each row as a block of lines.
func printColumns(w io.Writer, rows [][]string) {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = io.WriteString(tw, strings.Join(row, "\t")+"\n")
	}
	_ = tw.Flush()
	text := b.String()
	if width := widthOf(w); width > 0 && widest(text) > width {
		text = blocks(rows, width)
	}
	_, _ = io.WriteString(w, text)
}

// page is what is written at once to a terminal of a width, or to something else with the width 0.
type page struct {
	bytes.Buffer
	width int
}

// widthOf returns the number of columns of a terminal or of a page for one, or 0 if w is none.
func widthOf(w io.Writer) int {
	if p, ok := w.(*page); ok {
		return p.width
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// widest returns the number of characters of the longest line.
func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(strings.TrimRight(line, " \n")))
	}
	return most
}

// blocks returns each row as its values with the names of their columns, as many in a line as fit; all lines but the
// first one of a row are indented. A value that is empty or - is left out. A first column without a name has marks of
// one character.
func blocks(rows [][]string, width int) string {
	var b strings.Builder
	for _, row := range rows[1:] {
		used := 0 // characters of the line
		for i, value := range row {
			name := strings.ToLower(rows[0][i])
			if name == "" {
				used, _ = b.WriteString(cmp.Or(value, " ") + " ")
				continue
			}
			if value == "" || value == "-" {
				continue
			}
			value = name + ": " + value
			switch n := utf8.RuneCountInString(value); {
			case used <= len("* "): // the line has nothing but a mark
				used += n
			case used+len(blockGap)+n <= width:
				b.WriteString(blockGap)
				used += len(blockGap) + n
			default:
				b.WriteString("\n" + blockIndent)
				used = len(blockIndent) + n
			}
			b.WriteString(value)
		}
		b.WriteString("\n")
	}
	return b.String()
}
