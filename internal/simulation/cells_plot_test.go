package simulation

import (
	"fmt"
	"strings"
)

// The size of a plot for a terminal.
const (
	plotRows    = 12
	plotColumns = 60
)

// mostTimes returns the maximum of times in the ten seconds before any instant from the
// one after begin to end.
func (r *cellsRun) mostTimes(begin, end int64) (most float64) {
	for at := (begin/r.stride() + 1) * r.stride(); at <= end; at += r.stride() {
		most = max(most, r.times(at))
	}
	return most
}

// plot draws, as text, how many times the limit is admitted, up to the bound.
func (s *cellScenario) plot(r *cellsRun) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, at most %.3f times the limit:\n", s.name, s.bound)
	step := r.now / plotColumns
	for row := plotRows; row > 0; row-- {
		line := ""
		for at := int64(0); at < r.now; at += step {
			dot := " "
			if level := s.bound / plotRows; level*float64(row-1) < 1 && level*float64(row) >= 1 {
				dot = "-" // once the limit
			}
			if r.mostTimes(at, at+step) > s.bound*(float64(row)-0.5)/plotRows {
				dot = "#"
			}
			line += dot
		}
		fmt.Fprintf(&text, "%8.2f |%s\n", s.bound*float64(row)/plotRows, line)
	}
	fmt.Fprintf(&text, "%8s +%s %s\n", "", strings.Repeat("-", plotColumns), seconds(r.now))
	return text.String()
}

// The picture, in its own units: panels side by side, each with a plot in it.
const (
	panelWidth, panelHeight = 430, 150
	plotWidth, plotHeight   = 370, 84
	plotLeft, plotTop       = 40, 30
	pictureHead             = 34
	pictureColumns          = 2
	// dotTime is the time of one dot of a line.
	dotTime = second
)

// cellsPicture draws all scenarios as SVG.
type cellsPicture struct {
	panels int
	text   strings.Builder
}

// panel draws one scenario.
func (p *cellsPicture) panel(s *cellScenario, bucket, window *cellsRun) {
	x, y := p.panels%pictureColumns*panelWidth, p.panels/pictureColumns*panelHeight+pictureHead
	p.panels++
	top := s.bound * 1.1
	at := func(times float64) float64 { return plotTop + plotHeight*(1-times/top) }
	fmt.Fprintf(&p.text, "<g transform=\"translate(%d %d)\">\n<text x=\"8\" y=\"20\" class=\"name\">%s</text>\n", x, y, s.name)
	line := func(class string, times float64, label string) {
		fmt.Fprintf(&p.text, "<path class=\"%s\" d=\"M%d %.1fh%d\"/><text x=\"%d\" y=\"%.1f\" class=\"left\">%s</text>\n",
			class, plotLeft, at(times), plotWidth, plotLeft-4, at(times)+4, label)
	}
	line("axis", 0, "0")
	if s.bound > 1 {
		line("one", 1, map[bool]string{true: "1"}[s.bound > 1.2])
	}
	line("bound", s.bound, fmt.Sprintf("%.3f", s.bound))
	for second := int64(0); second <= bucket.now/1e6; second += bucket.now / 6e6 {
		fmt.Fprintf(&p.text, "<text x=\"%.1f\" y=\"%d\" class=\"below\">%d s</text>\n", plotLeft+plotWidth*float64(second)*1e6/float64(bucket.now), plotTop+plotHeight+14, second)
	}
	for _, r := range []*cellsRun{window, bucket} {
		class := map[bool]string{true: "bucket", false: "window"}[r == bucket]
		fmt.Fprintf(&p.text, "<path class=\"%s\" d=\"%s\"/>\n", class, r.path(at))
	}
	p.text.WriteString("</g>\n")
}

// path draws how many times the limit is admitted: a window from its beginning to its
// end.
func (r *cellsRun) path(height func(float64) float64) string {
	var path strings.Builder
	step, command := max(dotTime, r.stride()), "M"
	for at := int64(0); at < r.now; at += step {
		across := func(instant int64) float64 { return plotLeft + plotWidth*float64(instant)/float64(r.now) }
		y := height(r.mostTimes(at, at+step))
		if step > dotTime {
			fmt.Fprintf(&path, "%s%.1f %.1fL%.1f %.1f", command, across(at), y, across(at+step), y)
		} else if at >= cellSpan-step { // earlier, ten seconds have not passed
			fmt.Fprintf(&path, "%s%.1f %.1f", command, across(at+step), y)
		} else {
			continue
		}
		command = "L"
	}
	return path.String()
}

const pictureStyle = `text{font:12px sans-serif;fill:#333}.name{font-weight:bold}.left{text-anchor:end;font-size:10px}.below{text-anchor:middle;font-size:10px}` +
	`path{fill:none}.axis{stroke:#333}.one{stroke:#aaa}.bound{stroke:#c00;stroke-dasharray:5 3}.bucket{stroke:#06c;stroke-width:1.8}.window{stroke:#e90;stroke-width:1.4}`

// String returns the picture.
func (p *cellsPicture) String() string {
	width := pictureColumns * panelWidth
	height := pictureHead + (p.panels+pictureColumns-1)/pictureColumns*panelHeight
	var text strings.Builder
	fmt.Fprintf(&text, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n<style>%s</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", width, height, pictureStyle)
	for i, key := range []struct{ class, text string }{
		{"bound", "the bound"}, {"bucket", "token bucket: in the last 10 s"}, {"window", "window of 10 s"}, {"one", "the limit"},
	} {
		fmt.Fprintf(&text, "<path class=\"%s\" d=\"M%d 18h24\"/><text x=\"%d\" y=\"22\">%s</text>\n", key.class, 16+i*210, 46+i*210, key.text)
	}
	return text.String() + p.text.String() + "</svg>\n"
}
