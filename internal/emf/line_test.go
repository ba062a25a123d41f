package emf

import (
	"bytes"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/emf/emftest"
)

// TestLine checks that values that the format does not have are left out, with their declarations.
func TestLine(t *testing.T) {
	many := make([]float64, 150)
	line := Line{
		Time:       time.UnixMilli(1_559_748_430_481),
		Dimensions: []Dimension{{"Service", "a\"b\\\u2028<>"}, {"Limit", "x"}},
		Metrics: []Metric{
			One("None", UnitCount, math.NaN()),
			One("Large", UnitCount, 1e21),
			One("Small", UnitMilliseconds, 1e-9),
			{"Some", UnitNone, []float64{1, math.Inf(1), 2.5, math.Inf(-1)}},
			{"Many", UnitNone, many},
			{"Empty", UnitCount, nil},
			One("Last", UnitCount, math.Inf(1)),
		},
		Properties: []Property{{"text", "\n\x00\xff"}, {"no", func() {}}, {"some", map[string]int64{"a": 1}}},
		EachSecond: true,
	}
	text := line.Append([]byte("before"))
	got, err := emftest.Check(bytes.TrimPrefix(text, []byte("before")))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	want := map[string][]float64{"Large": {1e21}, "Small": {1e-9}, "Some": {1, 2.5}, "Many": many[:100]}
	if !maps.EqualFunc(got.Metrics, want, slices.Equal) {
		t.Errorf("the metrics are %v", got.Metrics)
	}
	if got.Namespace != Namespace || !got.Time.Equal(line.Time) || got.Resolution["Some"] != 1 || got.Units["Small"] != "Milliseconds" || got.Dimensions["Service"] != "a\"b\\\u2028<>" {
		t.Errorf("%+v", got)
	}
	if len(got.Properties) != 2 || got.Properties["text"] != "\n\x00\ufffd" {
		t.Errorf("the properties are %v", got.Properties)
	}
}

// TestLongLine checks that a line has at most the length that CloudWatch takes.
func TestLongLine(t *testing.T) {
	line := Line{Metrics: []Metric{One("A", UnitCount, 1)}, Properties: []Property{{"plan", ""}}}
	room := maxLineBytes - len(line.Append(nil))
	for over, properties := range map[int]int{-1: 1, 0: 1, 1: 0} {
		line.Properties[0].Value = strings.Repeat("x", room+over)
		got, err := emftest.Check(line.Append(nil))
		if err != nil || len(got.Properties) != properties || len(got.Metrics) != 1 {
			t.Errorf("%d bytes more than there is room for: %d properties, %v", over, len(got.Properties), err)
		}
	}
}

// TestPage checks that the example of docs/metrics.md is a line that a proxy writes.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	payments := Limit{ID: "payments", Plan: "free", Op: "POST /v1/payments"}
	line := limitLine("limitgate", time.Date(2026, 3, 2, 9, 0, 4, 0, time.UTC), &payments, Counts{
		Allowed: 118, Denied: 7, Sources: map[string]int64{"store": 31, "lease": 90, "cache": 4},
	})
	if text := line.Append([]byte("```json\n")); !bytes.Contains(page, text) {
		t.Errorf("docs/metrics.md lacks\n%s", text)
	}
}

// TestProcessLine checks the metrics of a process, of which docs/metrics.md has the number.
func TestProcessLine(t *testing.T) {
	totals := Totals{Decisions: 9, Denied: 8, Backstop: 7, Lease: 6, LeaseRefreshes: 5, StoreErrors: 4}
	want := map[string][]float64{
		"Decisions": {9}, "Denied": {8}, "Backstop": {7}, "LeaseDecisions": {6}, "LeaseRefreshes": {5}, "StoreErrors": {4},
		"OpenBreakers": {3}, "ConfigStale": {1},
	}
	s := Snapshot{OpenBreakers: 3, ConfigStale: true}
	for _, more := range []struct {
		metric string // that the line has in addition
		value  float64
	}{{}, {"ActiveCells", 2}, {"DecisionP99", 1.5}} {
		switch more.metric {
		case "ActiveCells":
			s.ActiveCells = int(more.value)
		case "DecisionP99":
			s.DecisionP99 = more.value
		}
		if more.metric != "" {
			want[more.metric] = []float64{more.value}
		}
		line := processLine("s", time.Now(), &s, totals)
		got, err := emftest.Check(line.Append(nil))
		if err != nil || !maps.EqualFunc(got.Metrics, want, slices.Equal) || len(got.Dimensions) != 1 || got.Resolution["Decisions"] != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
