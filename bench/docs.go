package bench

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed howto.md
var howToRead string

// WriteDocs writes the report as a page in Markdown.
func (r *Report) WriteDocs(w io.Writer) error {
	var page bytes.Buffer
	short, goals := r.missed()
	fmt.Fprintf(&page, "<!-- Written by `make bench-docs`; do not change it by hand. -->\n\n# Performance\n\n")
	fmt.Fprintf(&page, "%d of %d goals were met in the last run of `make bench` that was kept. It was on\n\n", goals-short, goals)
	r.writeMachine(&page, "- ")
	if r.Settings.Quick {
		fmt.Fprint(&page, "\n**This was a quick run: its rounds are too short for figures to be quoted.**\n")
	}
	if text := r.noise(); text != "" {
		fmt.Fprintf(&page, "\n%s\n", text)
	}
	fmt.Fprintf(&page, "\n%s\n", strings.ReplaceAll(strings.TrimSpace(howToRead), "ROUNDS", r.Settings.rounds()))
	page.WriteString("\n## Goals\n\n")
	r.goalsGrid().writeMarkdown(&page)
	page.WriteString("\n## Cases\n")
	for i := range r.Cases {
		r.Cases[i].writeDocs(&page)
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// goalsGrid is the table of the figures that have goals.
func (r *Report) goalsGrid() *grid {
	g := &grid{head: []string{"what", "figure", "goal", "measured", "range", ""}, left: 2}
	for i := range r.Cases {
		c := &r.Cases[i]
		link := fmt.Sprintf("[%s](#%s)", c.Title, c.Name)
		if c.Error != "" {
			g.add(link, "failed", "", "", "", "**failed**")
		}
		for j := range c.Figures {
			f := &c.Figures[j]
			if f.Goal == nil {
				continue
			}
			verdict := f.Verdict
			if verdict == missed {
				verdict = "**" + verdict + "**"
			}
			g.add(link, f.Name, f.goalText(), f.Unit.Format(f.Value.Median), f.rangeText(), verdict)
		}
	}
	return g
}

// rangeText formats the range of a figure, if it has one.
func (f *Figure) rangeText() string {
	if f.Value.Min == f.Value.Max {
		return ""
	}
	return f.Unit.Format(f.Value.Min) + " to " + f.Unit.Format(f.Value.Max)
}

// command returns the command that runs the case alone.
func (c *Result) command() string { return "make bench ONLY=" + c.Name }

// writeDocs writes the section of a case.
func (c *Result) writeDocs(page *bytes.Buffer) {
	fmt.Fprintf(page, "\n### %s\n\n%s\n\n", c.Name, c.About)
	fmt.Fprintf(page, "Printed by `%s`.\n\n", c.command())
	if c.Error != "" {
		fmt.Fprintf(page, "It failed:\n\n```\n%s\n```\n", c.Error)
		return
	}
	if len(c.Sides) > 0 {
		one := Report{Cases: []Result{*c}}
		g := one.sidesGrid()
		g.head = g.head[1:]
		for i := range g.rows {
			g.rows[i] = g.rows[i][1:]
		}
		g.left = 1
		g.writeMarkdown(page)
		page.WriteByte('\n')
	}
	g := &grid{head: []string{"figure", "median", "range", "goal", ""}, left: 1}
	for i := range c.Figures {
		f := &c.Figures[i]
		g.add(f.Name, f.Unit.Format(f.Value.Median), f.rangeText(), f.goalText(), f.Verdict)
	}
	g.writeMarkdown(page)
	if c.Profile != nil {
		c.Profile.writeDocs(page)
	}
}
