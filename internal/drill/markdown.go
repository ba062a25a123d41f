package drill

import (
	"fmt"
	"regexp"
	"strings"
)

// Markdown returns the drills for a page of documentation in docs.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| drill | outage | `--run` |\n|---|---|---|\n")
	for _, d := range All() {
		runs := ""
		if d.Runs {
			runs = "yes"
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", d.Name, d.Name, d.Summary, runs)
	}
	for _, d := range All() {
		d.markdown(&b)
	}
	return b.String()
}

// markdown writes the section of a drill.
func (d *Drill) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\nThe outage: %s. %s\n", d.Name, d.Summary, d.Goal)
	markdownSteps(b, "To do", d.Steps)
	b.WriteString("\n**To see**:\n\n| in | | |\n|---|---|---|\n")
	for _, s := range d.Signs {
		name := "`" + s.Name + "`"
		fmt.Fprintf(b, "| %s | %s | %s |\n", s.In, name, s.Means)
	}
	b.WriteString("\n**How long it may take**:\n\n| | | from |\n|---|---|---|\n")
	for _, t := range d.Times {
		from := "`" + t.From + "`"
		if strings.HasSuffix(t.From, ".md") {
			from = "[" + t.From + "](" + t.From + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", t.What, t.Long, from)
	}
	markdownSteps(b, "To end it", d.End)
	var links []string
	for _, p := range d.Pages {
		links = append(links, fmt.Sprintf("[%s](%s#%s)", p.Heading, p.Page, anchor(p.Heading)))
	}
	fmt.Fprintf(b, "\nMore: %s.\n", strings.Join(links, ", "))
}

func markdownSteps(b *strings.Builder, heading string, steps []Step) {
	fmt.Fprintf(b, "\n**%s**:\n\n", heading)
	for i, s := range steps {
		fmt.Fprintf(b, "%d. %s\n", i+1, s.Text)
		if len(s.Commands) > 0 {
			fmt.Fprintf(b, "   ```sh\n   %s\n   ```\n", strings.Join(s.Commands, "\n   "))
		}
	}
}

// notInAnchor matches the characters of a heading that its anchor lacks.
var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchor returns the anchor of a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
