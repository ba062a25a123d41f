package drill

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// textWidth is the width of the lines of a text, in bytes.
const textWidth = 100

// WriteList writes the names of the drills.
func WriteList(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "DRILL\tOUTAGE\tWITH --run")
	for _, d := range All() {
		runs := "-"
		if d.Runs {
			runs = "yes"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", d.Name, d.Summary, runs)
	}
	return tw.Flush()
}

// Write writes the drill for a terminal.
func (d *Drill) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n%s", d.Name, d.Summary, wrap("", d.Goal))
	writeSteps(&b, "To do", d.Steps)
	b.WriteString("\nTo see\n\n")
	for _, s := range d.Signs {
		b.WriteString(wrap("  ", s.In+" "+s.Name+": "+s.Means))
	}
	b.WriteString("\nHow long it may take\n\n")
	for _, t := range d.Times {
		b.WriteString(wrap("  ", t.What+": "+t.Long+" ("+t.From+")"))
	}
	writeSteps(&b, "To end it", d.End)
	b.WriteString("\nMore\n\n")
	for _, p := range d.Pages {
		fmt.Fprintf(&b, "  docs/%s: %s\n", p.Page, p.Heading)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeSteps(b *strings.Builder, heading string, steps []Step) {
	fmt.Fprintf(b, "\n%s\n\n", heading)
	for i, s := range steps {
		b.WriteString(wrap(fmt.Sprintf("%3d. ", i+1), s.Text))
		for _, c := range s.Commands {
			fmt.Fprintf(b, "       %s\n", c)
		}
	}
}

// wrap returns text in lines. The first one begins with first, and the others are indented by its
// length, or by two bytes more if it is blank.
func wrap(first, text string) string {
	indent := strings.Repeat(" ", len(first))
	if first != "" && strings.TrimSpace(first) == "" {
		indent += "  "
	}
	var b strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > textWidth {
			b.WriteString(line + "\n")
			line = indent + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}
