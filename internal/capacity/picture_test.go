package capacity

import (
	"encoding/xml"
	"math"
	"strconv"
	"strings"
	"testing"
)

// TestPicture: the bars are XML on a background of their own, and in the ratio of the bills.
func TestPicture(t *testing.T) {
	in := input(t, 1e6)
	in.Edge.Value = EdgeCloudFrontWAF
	svg, err := Picture(in)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Rects []struct {
			Width string `xml:"width,attr"`
			Fill  string `xml:"fill,attr"`
		} `xml:"rect"`
		Texts []string `xml:"text"`
	}
	if err := xml.Unmarshal(svg, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Rects[0].Width != "100%" || doc.Rects[0].Fill != "#ffffff" {
		t.Errorf("the background is %+v", doc.Rects[0])
	}
	var edges []float64
	for _, r := range doc.Rects[1+len(shares):] {
		if width, err := strconv.ParseFloat(r.Width, 64); err == nil && r.Fill == shares[2].colour {
			edges = append(edges, width)
		}
	}
	if len(edges) != len(loads) {
		t.Fatalf("%d bars of the edge: %v", len(edges), edges)
	}
	for i, load := range loads {
		if want := edges[2] * load; math.Abs(edges[i]-want) > 1 {
			t.Errorf("the edge of %v times the load is %v long, want %v", load, edges[i], want)
		}
	}
	for _, want := range []string{"250,000/s", "4,000,000/s", "prices of 2026-10-02, us-east-1", "proxies (left out)"} {
		if !strings.Contains(strings.Join(doc.Texts, "\n"), want) {
			t.Errorf("no %q in %q", want, doc.Texts)
		}
	}
}
