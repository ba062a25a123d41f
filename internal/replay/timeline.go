package replay

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// maxPoints bounds the points of a timeline: beyond it, neighbours become one.
const maxPoints = 4096

// point is the most requests of a bucket in a window.
type point struct {
	begin time.Time
	most  int64
}

// addPoint adds the window that ends to the timeline.
func (w *windows) addPoint(most int64) {
	w.points = append(w.points, point{w.begin, most})
	if len(w.points) < maxPoints {
		return
	}
	half := w.points[:0]
	for i := 0; i+1 < len(w.points); i += 2 {
		half = append(half, point{w.points[i].begin, max(w.points[i].most, w.points[i+1].most)})
	}
	w.points = half
}

// Lengths of the timeline, in pixels.
const (
	timelineWidth, panelHeight, panelMargin = 860, 140, 50
	timelineColumns                         = 200
)

// WriteTimeline writes an SVG with a panel for each limit that requests met: the most requests that
// one bucket had in a period of the limit, over the time of the log, and the limit as a line. There
// are none behind a proxy.
func (r *Report) WriteTimeline(w io.Writer) error {
	var shown []*LimitReport
	for i := range r.Limits {
		if l := &r.Limits[i]; l.windows != nil && len(l.windows.points) > 0 {
			shown = append(shown, l)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Requests of the busiest bucket of each limit over time">`+"\n",
		timelineWidth, max(1, len(shown))*(panelHeight+panelMargin)+panelMargin)
	b.WriteString("<style>\ntext { font: 12px sans-serif; fill: #333333 }\n.title { font-weight: bold }\n.bar { fill: #4878a8 }\n.over { fill: #c0392b }\n.limit { stroke: #c0392b; stroke-dasharray: 6 3; stroke-width: 1.5 }\n</style>\n")
	b.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	for i, l := range shown {
		l.panel(&b, float64(i*(panelHeight+panelMargin)+panelMargin), *r.From, *r.To)
	}
	legend := []string{
		"A bar stands at the beginning of a period of the rate, and has the requests of all of it.",
		"The line is the rate. Red is more than that, which a burst may admit.",
	}
	if len(shown) == 0 {
		legend = []string{"No request met a limit."}
	}
	for i, line := range legend {
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", panelMargin, 14+14*i, line)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// panel writes the panel of a limit at a height.
func (l *LimitReport) panel(b *strings.Builder, top float64, from, to time.Time) {
	const width = timelineWidth - 2*panelMargin
	span := max(to.Sub(from), time.Second)
	columns := make([]int64, timelineColumns)
	for _, p := range l.windows.points {
		i := int(float64(timelineColumns) * float64(p.begin.Sub(from)) / float64(span))
		i = min(max(i, 0), timelineColumns-1)
		columns[i] = max(columns[i], p.most)
	}
	scale := float64(panelHeight) / float64(max(l.windows.limit, slices.Max(columns), 1))
	bottom := top + panelHeight
	fmt.Fprintf(b, `<text class="title" x="%d" y="%.1f">%s (%s): at most %d requests of a bucket in the period of the rate</text>`+"\n",
		panelMargin, top-8, escapeXML(l.ID), escapeXML(l.windows.title), l.windows.most)
	for i, n := range columns {
		if n == 0 {
			continue
		}
		class := "bar"
		if n > l.windows.limit {
			class = "over"
		}
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n",
			class, panelMargin+float64(i)*width/timelineColumns, bottom-float64(n)*scale, float64(width)/timelineColumns-0.5, float64(n)*scale)
	}
	fmt.Fprintf(b, `<line class="limit" x1="%d" y1="%.1f" x2="%d" y2="%.1[2]f"/>`+"\n", panelMargin, bottom-float64(l.windows.limit)*scale, panelMargin+width)
	fmt.Fprintf(b, `<text x="%d" y="%.1f">%s</text>`+"\n", panelMargin, bottom+16, stamp(&from))
	fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", panelMargin+width, bottom+16, stamp(&to))
}

func escapeXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
