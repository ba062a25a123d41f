package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// rect is a part of a bar.
type rect struct{ y, width float64 }

// readPicture returns the rectangles of a picture by their colours, and its texts. It fails if the
// picture is not XML.
func readPicture(t *testing.T, picture []byte) (rects map[string][]rect, texts []string) {
	t.Helper()
	rects = map[string][]rect{}
	in := xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return rects, texts
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.CharData:
			texts = append(texts, string(token))
		case xml.StartElement:
			values := map[string]string{}
			for _, a := range token.Attr {
				values[a.Name.Local] = a.Value
			}
			if token.Name.Local == "rect" {
				y, _ := strconv.ParseFloat(values["y"], 64)
				width, _ := strconv.ParseFloat(values["width"], 64)
				rects[values["fill"]] = append(rects[values["fill"]], rect{y, width})
			}
		}
	}
}

// TestPicture: the lengths of bars are in the ratio of the costs, and the picture names each
// side.
func TestPicture(t *testing.T) {
	r := &Report{Cases: []Result{{
		Name: "a", Title: "one <bucket> & more", Sides: []SideResult{
			{Name: "limitgate", PerSecond: once(1000), Client: once(1), Proxy: &Spread{Median: 2}, Store: &Spread{Median: 3}},
			{Name: "script", PerSecond: once(500), Client: once(2), Store: &Spread{Median: 10}},
		},
	}, {Name: "b", Error: "did not run"}}}
	picture, err := r.picture(&costChart, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	rects, texts := readPicture(t, picture)
	var lengths []float64
	for _, part := range costChart.parts {
		for _, bar := range rects[part.colour][1:] { // the first is that of the legend
			lengths = append(lengths, bar.width)
		}
	}
	whole := float64(pictureWidth - labelWidth - valueWidth)
	for i, want := range []float64{1, 2, 2, 3, 10} { // of 12
		if i >= len(lengths) || math.Abs(lengths[i]-want*whole/12) > 0.1 {
			t.Fatalf("lengths %v, that at %d is not %v of 12 parts of %v", lengths, i, want, whole)
		}
	}
	for _, want := range []string{"one <bucket> & more", "limitgate", "script", "6.00 us; 1,000/s", "12.0 us; 500/s"} {
		if !strings.Contains(strings.Join(texts, "\n"), want) {
			t.Errorf("the picture lacks %q: %q", want, texts)
		}
	}
	if _, err := r.picture(&costChart, []string{"c"}); err == nil {
		t.Error("a case that does not exist is drawn")
	}
}

// TestCoresPicture: a report of event loops alone has a picture of their throughput.
func TestCoresPicture(t *testing.T) {
	r := &Report{Cases: []Result{{Name: coresPrefix + "memory", Title: "loops", Sides: []SideResult{
		{Name: "one", PerSecond: once(1000)}, {Name: "two", PerSecond: once(1500)},
	}}}}
	folder := t.TempDir()
	if err := r.WriteDocs(folder); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(filepath.Join(folder, coresPage))
	if err != nil {
		t.Fatal(err)
	}
	rects, _ := readPicture(t, picture)
	bars := rects[coresChart.parts[0].colour][1:] // the first is that of the legend
	if len(bars) != 2 || math.Abs(bars[1].width-1.5*bars[0].width) > 0.1 {
		t.Errorf("bars %+v, want two in the ratio of 1,000 to 1,500", bars)
	}
}
