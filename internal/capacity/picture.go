package capacity

import (
	"bytes"
	"fmt"
	"html"
)

// The measures of the picture, in pixels.
const (
	pictureWidth = 960
	labelWidth   = 190 // of the loads, left of the bars
	valueWidth   = 190 // of the figures, right of the longest bar
	barHeight    = 16
	barStep      = 24
	barsTop      = 60
)

// loads are the multiples of the load that the picture shows.
var loads = []float64{0.25, 0.5, 1, 2, 4}

// share is a part of a bar.
type share struct {
	name, colour string
	usd          func(b *Bill) *float64
}

// shares are the parts of a bar, in order.
var shares = []share{
	{"store", "#c6412d", func(b *Bill) *float64 { return b.Store }},
	{"proxies", "#2f6fb5", func(b *Bill) *float64 { return b.Proxies }},
	{"edge", "#9aa5b1", func(b *Bill) *float64 { return b.Edge }},
	{"metrics", "#7a5aa6", func(b *Bill) *float64 { return b.Metrics }},
	{"cross-AZ", "#3d8b5f", func(b *Bill) *float64 { return b.CrossZone }},
}

// Picture returns an SVG of the monthly bill for a quarter of the load to four times of it. It
// brings its own background, so that light and dark pages show it alike.
func Picture(in *Input) ([]byte, error) {
	plans := make([]*Plan, 0, len(loads))
	longest := 0.0
	for _, load := range loads {
		other := *in
		other.RPS.Value *= load
		other.PeakRPS.Value *= load
		p, err := compute(&other)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
		longest = max(longest, p.Bill.Total)
	}
	title := "Dollars a month by requests a second"
	height := barsTop + len(plans)*barStep + 10
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img">`+"\n",
		pictureWidth, height, pictureWidth, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n", title)
	fmt.Fprintf(&b, `<text x="10" y="21" font-weight="bold">%s</text><text x="10" y="42">%s</text>`+"\n",
		title, html.EscapeString("prices of "+plans[0].Prices.Date+", "+plans[0].Prices.Region))
	drawLegend(&b, &plans[0].Bill)
	for i, p := range plans {
		p.draw(&b, barsTop+i*barStep, float64(pictureWidth-labelWidth-valueWidth)/max(longest, 1))
	}
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// drawLegend draws the names of the parts that have a price.
func drawLegend(b *bytes.Buffer, bill *Bill) {
	x := labelWidth + 150
	for _, s := range shares {
		name := s.name
		if s.usd(bill) == nil {
			name += " (left out)"
		}
		fmt.Fprintf(b, `<rect x="%d" y="31" width="12" height="12" fill="%s"/><text x="%d" y="42">%s</text>`+"\n", x, s.colour, x+18, name)
		x += 34 + 8*len(name)
	}
}

// draw draws the bar of a plan.
func (p *Plan) draw(b *bytes.Buffer, y int, scale float64) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s/s</text>`, labelWidth-8, y+13, count(p.Inputs.RPS.Value))
	x := float64(labelWidth)
	for _, s := range shares {
		usd := s.usd(&p.Bill)
		if usd == nil || *usd*scale < 0.05 {
			continue
		}
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, y, *usd*scale, barHeight, s.colour)
		x += *usd * scale
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d">%s; %d shards</text>`+"\n", x+8, y+13, Dollars(p.Bill.Total), p.Shards)
}
