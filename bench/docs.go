package bench

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The pages in the folder of the documentation.
const (
	mainPage   = "performance.md"
	tablesPage = "performance-tables.md"
)

//go:embed columns.md
var columns string

// WriteDocs writes the page of all tables and the picture into a folder, and the main figures
// into the page that is there. On an error it changes none. A report of the cases of event
// loops alone has a picture of its own.
func (r *Report) WriteDocs(folder string) error {
	if r.onlyCores() {
		picture, err := r.picture(&coresChart, r.names())
		if err != nil {
			return fmt.Errorf("draw throughput: %w", err)
		}
		return writePage(folder, coresPage, picture)
	}
	path := filepath.Join(folder, mainPage)
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	if page, err = r.updatePage(page, mainPairs, mainFigures); err != nil {
		return fmt.Errorf("update %s: %w", path, err)
	}
	picture, err := r.picture(&costChart, mainPairs)
	if err != nil {
		return fmt.Errorf("draw costs: %w", err)
	}
	for name, text := range map[string][]byte{mainPage: page, tablesPage: r.tables(), picturePage: picture} {
		if err := writePage(folder, name, text); err != nil {
			return err
		}
	}
	return nil
}

func writePage(folder, name string, text []byte) error {
	if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// names returns the names of the cases.
func (r *Report) names() []string {
	var names []string
	for i := range r.Cases {
		names = append(names, r.Cases[i].Name)
	}
	return names
}

// onlyCores reports whether all cases are those of event loops.
func (r *Report) onlyCores() bool {
	return !slices.ContainsFunc(r.names(), func(name string) bool { return !strings.HasPrefix(name, coresPrefix) })
}

// tables returns the page of all tables.
func (r *Report) tables() []byte {
	var page bytes.Buffer
	fmt.Fprintf(&page, "<!-- Written by `make bench-docs`; do not change it by hand. -->\n\n# Performance: all tables\n\n")
	fmt.Fprintf(&page, "[Performance](%s) has the main figures and explains the benchmark.\n\n", mainPage)
	r.writeRun(&page)
	fmt.Fprintf(&page, "\n%s\n", strings.ReplaceAll(strings.TrimSpace(columns), "ROUNDS", r.Settings.rounds()))
	page.WriteString("\n## Goals\n\n")
	r.goalsGrid().writeMarkdown(&page)
	page.WriteString("\n## Cases\n")
	for i := range r.Cases {
		r.Cases[i].writeDocs(&page)
	}
	return page.Bytes()
}

// writeRun writes the number of met goals and the conditions of the measurement.
func (r *Report) writeRun(page *bytes.Buffer) {
	short, goals := r.missed()
	fmt.Fprintf(page, "The last full run of `make bench` met %d of %d goals, on\n\n", goals-short, goals)
	r.writeMachine(page, "- ")
	if r.Settings.Quick {
		fmt.Fprint(page, "\n**This was a quick run: its rounds are too short for figures to be quoted.**\n")
	}
	if text := r.noise(); text != "" {
		fmt.Fprintf(page, "\n%s\n", text)
	}
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
			g.add(link, f.Name, f.goalText(), f.Unit.Format(f.Value.Median), f.rangeText(), f.verdictText())
		}
	}
	return g
}

// verdictText formats the verdict of a figure, if it has one.
func (f *Figure) verdictText() string {
	if f.Verdict == missed {
		return "**" + missed + "**"
	}
	return f.Verdict
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
