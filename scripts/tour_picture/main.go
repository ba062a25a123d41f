// Command tour_picture writes docs/tour.svg, an animation of the commands of docs/tour.md and of
// the output that the page shows.
package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"
)

func main() {
	page, err := os.ReadFile("docs/tour.md")
	if err == nil {
		err = os.WriteFile("docs/tour.svg", picture(stepsOf(string(page))), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// step is a step of the tour: its sentence, and the lines of its terminal.
type step struct {
	sentence string
	lines    []string
}

// stepsOf returns the numbered steps of the page, whose paragraphs are one line each.
func stepsOf(page string) (steps []step) {
	inside := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside && len(steps) > 0:
			last := &steps[len(steps)-1]
			last.lines = append(last.lines, line)
		case len(line) > 0 && line[0] >= '0' && line[0] <= '9':
			steps = append(steps, step{sentence: strings.ReplaceAll(line, "`", "")})
		}
	}
	return steps
}

// Lengths in pixels, times in seconds.
const (
	width, margin    = 860, 20
	lineHeight       = 20
	columns          = 100 // of monospaced text of 13 px
	secondsPerStep   = 5
	framesPerPicture = 4 // steps that are on the screen at once
)

// picture returns an SVG that shows the steps one after the other, and all over again. Where
// animations are not wanted, it shows the last ones.
func picture(steps []step) []byte {
	var b strings.Builder
	screens := screensOf(steps)
	most := 0
	for _, s := range screens {
		most = max(most, len(s))
	}
	height := 2*margin + (most+1)*lineHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Twelve commands in a terminal: a cluster, a limits file, decisions, a change, a failover">`+"\n", width, height)
	fmt.Fprintf(&b, "<style>\ntext { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #d6deeb; white-space: pre }\n.sentence { fill: #82aaff }\n.command { fill: #ffffff; font-weight: bold }\n")
	b.WriteString(animation(len(screens)))
	b.WriteString("</style>\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#101820"/>`+"\n", width, height)
	for i, lines := range screens {
		fmt.Fprintf(&b, `<g class="screen" style="animation-delay: %ds">`+"\n", i*secondsPerStep)
		for j, line := range lines {
			fmt.Fprintf(&b, `<text x="%d" y="%d"%s>%s</text>`+"\n", margin, margin+(j+1)*lineHeight, line.class, escape(line.text))
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// animation returns the style that shows each of n screens for its time.
func animation(n int) string {
	share := 100 / float64(n)
	return fmt.Sprintf(`.screen { visibility: hidden; animation: show %ds step-end infinite }
@keyframes show { 0%% { visibility: visible } %.3f%% { visibility: hidden } }
@media (prefers-reduced-motion: reduce) { .screen { animation: none } .screen:last-of-type { visibility: visible } }
`, n*secondsPerStep, share)
}

// row is a line of a screen.
type row struct{ text, class string }

// screensOf returns what is on the screen after each step: the last few steps.
func screensOf(steps []step) (screens [][]row) {
	for i := range steps {
		var rows []row
		for j := max(0, i-framesPerPicture+1); j <= i; j++ {
			rows = append(rows, row{cut(steps[j].sentence), ` class="sentence"`})
			for _, line := range steps[j].lines {
				class := ""
				if strings.HasPrefix(line, "$ ") {
					class = ` class="command"`
				}
				rows = append(rows, row{cut(line), class})
			}
			rows = append(rows, row{})
		}
		screens = append(screens, rows[:len(rows)-1])
	}
	return screens
}

// cut shortens a line to the width of the terminal.
func cut(line string) string {
	if runes := []rune(line); len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return line
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
