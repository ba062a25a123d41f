package bench

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// picturePage is the name of the picture of what decisions cost.
const picturePage = "performance-cost.svg"

// The measures of the picture, in pixels.
const (
	pictureWidth = 960
	labelWidth   = 300 // of the names of sides, left of the bars
	valueWidth   = 170 // of the figures, right of the longest bar
	barHeight    = 16
	barStep      = 20
	titleStep    = 30
	legendHeight = 34
)

// pictureParts are the processes of a side in the order of the bar, with their colours.
var pictureParts = []struct {
	name, colour string
	of           func(*SideResult) float64
}{
	{"client", "#9aa5b1", func(s *SideResult) float64 { return max(0, s.Client.Median) }},
	{"Limitgate", "#2f6fb5", func(s *SideResult) float64 { return median(s.Proxy) }},
	{"Redis", "#c6412d", func(s *SideResult) float64 { return median(s.Store) }},
}

func median(s *Spread) float64 {
	if s == nil {
		return 0
	}
	return max(0, s.Median)
}

// cost is the CPU of all processes for a decision, in microseconds.
func (s *SideResult) cost() (sum float64) {
	for _, part := range pictureParts {
		sum += part.of(s)
	}
	return sum
}

// picture returns an SVG of the CPU that a decision costs in the cases, on Limitgate and on what it
// is compared with.
func (r *Report) picture(cases []string) ([]byte, error) {
	longest, height := 0.0, legendHeight
	var found []*Result
	for _, name := range cases {
		c, err := r.find(name)
		if err != nil {
			return nil, err
		}
		if c.Error != "" {
			continue
		}
		found = append(found, c)
		height += titleStep + len(c.Sides)*barStep
		for i := range c.Sides {
			longest = max(longest, c.Sides[i].cost())
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img">`+"\n",
		pictureWidth, height+10, pictureWidth, height+10)
	b.WriteString("<title>CPU time of a decision, in microseconds</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n")
	drawLegend(&b)
	y, scale := legendHeight, float64(pictureWidth-labelWidth-valueWidth)/longest
	for _, c := range found {
		fmt.Fprintf(&b, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y+18, html.EscapeString(c.Title))
		y += titleStep
		for i := range c.Sides {
			c.Sides[i].draw(&b, y, scale)
			y += barStep
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// drawLegend draws the names of the parts.
func drawLegend(b *bytes.Buffer) {
	x := labelWidth
	for _, part := range pictureParts {
		fmt.Fprintf(b, `<rect x="%d" y="10" width="12" height="12" fill="%s"/><text x="%d" y="21">%s</text>`+"\n", x, part.colour, x+18, part.name)
		x += 100
	}
	fmt.Fprintf(b, `<text x="%d" y="21">CPU us of a decision; decisions a second</text>`+"\n", x)
}

// draw draws the bar of a side.
func (s *SideResult) draw(b *bytes.Buffer, y int, scale float64) {
	weight := "normal"
	if strings.HasPrefix(s.Name, "limitgate") {
		weight = "bold"
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" font-weight="%s">%s</text>`, labelWidth-8, y+13, weight, html.EscapeString(s.Name))
	x := float64(labelWidth)
	for _, part := range pictureParts {
		if width := part.of(s) * scale; width > 0 {
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, y, width, barHeight, part.colour)
			x += width
		}
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d">%s; %s</text>`+"\n", x+8, y+13, Microseconds.Format(s.cost()), PerSecond.Format(s.PerSecond.Median))
}
