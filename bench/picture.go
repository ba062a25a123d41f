package bench

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// The names of the pictures: of what decisions cost, and of throughput by event loops.
const (
	picturePage = "performance-cost.svg"
	coresPage   = "performance-cores.svg"
)

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

// part is a part of a bar.
type part struct {
	name, colour string
	of           func(*SideResult) float64
}

// chart describes the bars of a picture.
type chart struct {
	title string
	parts []part // of each bar, in order
	text  string // explains the texts behind the bars
	of    func(length float64, s *SideResult) string
}

// costChart shows what a decision costs each process of a side.
var costChart = chart{
	title: "CPU time of a decision, in microseconds",
	parts: []part{
		{"client", "#9aa5b1", func(s *SideResult) float64 { return max(0, s.Client.Median) }},
		{"Limitgate", "#2f6fb5", func(s *SideResult) float64 { return median(s.Proxy) }},
		{"Redis", "#c6412d", func(s *SideResult) float64 { return median(s.Store) }},
	},
	text: "CPU us of a decision; decisions a second",
	of: func(length float64, s *SideResult) string {
		return Microseconds.Format(length) + "; " + PerSecond.Format(s.PerSecond.Median)
	},
}

// coresChart shows how many decisions a side makes.
var coresChart = chart{
	title: "Decisions a second by event loops",
	parts: []part{{"decisions a second", "#2f6fb5", func(s *SideResult) float64 { return s.PerSecond.Median }}},
	text:  "decisions a second; CPU us of Limitgate for one",
	of: func(length float64, s *SideResult) string {
		return PerSecond.Format(length) + "; " + Microseconds.Format(median(s.Proxy))
	},
}

func median(s *Spread) float64 {
	if s == nil {
		return 0
	}
	return max(0, s.Median)
}

// length is the sum of the parts of a side's bar.
func (c *chart) length(s *SideResult) (sum float64) {
	for _, part := range c.parts {
		sum += part.of(s)
	}
	return sum
}

// picture returns an SVG of a chart with a bar for each side of the cases.
func (r *Report) picture(chart *chart, cases []string) ([]byte, error) {
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
			longest = max(longest, chart.length(&c.Sides[i]))
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img">`+"\n",
		pictureWidth, height+10, pictureWidth, height+10)
	fmt.Fprintf(&b, "<title>%s</title>\n", chart.title)
	b.WriteString("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n")
	chart.drawLegend(&b)
	y, scale := legendHeight, float64(pictureWidth-labelWidth-valueWidth)/longest
	for _, c := range found {
		fmt.Fprintf(&b, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y+18, html.EscapeString(c.Title))
		y += titleStep
		for i := range c.Sides {
			chart.draw(&b, &c.Sides[i], y, scale)
			y += barStep
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// drawLegend draws the names of the parts.
func (c *chart) drawLegend(b *bytes.Buffer) {
	x := labelWidth
	for _, part := range c.parts {
		fmt.Fprintf(b, `<rect x="%d" y="10" width="12" height="12" fill="%s"/><text x="%d" y="21">%s</text>`+"\n", x, part.colour, x+18, part.name)
		x += 30 + 8*len(part.name)
	}
	fmt.Fprintf(b, `<text x="%d" y="21">%s</text>`+"\n", x, c.text)
}

// draw draws the bar of a side.
func (c *chart) draw(b *bytes.Buffer, s *SideResult, y int, scale float64) {
	weight := "normal"
	if strings.HasPrefix(s.Name, "limitgate") {
		weight = "bold"
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" font-weight="%s">%s</text>`, labelWidth-8, y+13, weight, html.EscapeString(s.Name))
	x := float64(labelWidth)
	for _, part := range c.parts {
		if width := part.of(s) * scale; width > 0 {
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, y, width, barHeight, part.colour)
			x += width
		}
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`+"\n", x+8, y+13, c.of(c.length(s), s))
}
