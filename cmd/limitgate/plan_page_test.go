package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/capacity"
)

var update = flag.Bool("update", false, "write the figures and the picture of docs/capacity.md")

// The page of the planner and its picture, in the root of the repository.
const (
	planPage    = "docs/capacity.md"
	planPicture = "docs/capacity-bill.svg"
	planSheet   = "--rps 50k --peak-rps 150k --limits examples/capacity/three.yaml --edge http-api"
)

// planTables are the tables of the page by their markers: a description and flags a row.
var planTables = map[string][][2]string{
	"naive": {
		{"four commands a request, 150,000/s a shard", "--rps 1M --node cache.r7g.large --cpu-per-call 26.667us --utilisation 1"},
		{"eight, at two thirds of that", "--rps 1M --node cache.r7g.large --cpu-per-call 53.333us --utilisation 0.6667"},
		{"measured, one limit", "--rps 1M --node cache.r7g.large"},
		{"measured, three limits", "--rps 1M --node cache.r7g.large --limits examples/capacity/three.yaml"},
		{"measured, four limits", "--rps 1M --node cache.r7g.large --limits examples/capacity/four.yaml"},
		{"the same, 0.8 decided locally", "--rps 1M --node cache.r7g.large --limits examples/capacity/four.yaml --local-share 0.8"},
	},
	"peak": {
		{"sized for the peak", "--rps 50k --peak-rps 150k --limits examples/capacity/three.yaml"},
		{"0.8 decided locally", "--rps 50k --peak-rps 150k --limits examples/capacity/three.yaml --local-share 0.8"},
		{"TLS everywhere", "--rps 50k --peak-rps 150k --limits examples/capacity/three.yaml --tls"},
	},
	"tenfold": {
		{"a tenth", "--rps 100k --tenants 1k --limits examples/capacity/three.yaml"},
		{"", "--rps 1M --tenants 10k --limits examples/capacity/three.yaml"},
		{"ten times", "--rps 10M --tenants 100k --limits examples/capacity/three.yaml"},
		{"ten times the tenants alone", "--rps 1M --tenants 100k --limits examples/capacity/three.yaml"},
	},
	"edge": {
		{"none", "--rps 1M --limits examples/capacity/three.yaml"},
		{"CloudFront and WAF", "--rps 1M --limits examples/capacity/three.yaml --edge cloudfront-waf"},
		{"API Gateway, HTTP", "--rps 1M --limits examples/capacity/three.yaml --edge http-api"},
		{"API Gateway, REST", "--rps 1M --limits examples/capacity/three.yaml --edge api-gateway-rest"},
	},
}

// planned runs limitgate plan, and returns its output.
func planned(t *testing.T, flags string) string {
	t.Helper()
	out, errs, code := command(append([]string{"plan"}, strings.Fields(flags)...)...)
	if code != exitOK {
		t.Fatalf("plan %s: exit %d: %s", flags, code, errs)
	}
	return out
}

// planTable returns a table of the page.
func planTable(t *testing.T, rows [][2]string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| | `limitgate plan` | shards | bound | nodes | proxies | store | cross-AZ | edge | total a month |\n|---|---|---:|---|---|---:|---:|---:|---:|---:|\n")
	for _, row := range rows {
		var p struct {
			Shards    int
			DecidedBy string `json:"decided_by"`
			Nodes     int
			Node      string
			Proxies   int
			Bill      struct {
				Total, Store, Edge float64
				CrossZone          float64 `json:"cross_az"`
			} `json:"monthly_usd"`
		}
		if err := json.Unmarshal([]byte(planned(t, row[1]+" --json")), &p); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %d | %s | %d x %s | %d | %s | %s | %s | **%s** |\n", row[0], row[1],
			p.Shards, p.DecidedBy, p.Nodes, strings.TrimPrefix(p.Node, "cache."), p.Proxies,
			capacity.Dollars(p.Bill.Store), capacity.Dollars(p.Bill.CrossZone), capacity.Dollars(p.Bill.Edge), capacity.Dollars(p.Bill.Total))
	}
	return b.String()
}

// TestCapacityPage compares the figures of docs/capacity.md with the planner's output.
func TestCapacityPage(t *testing.T) {
	t.Chdir("../..")
	content, err := os.ReadFile(planPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	replace := func(name, text string) {
		begin, end := "<!-- "+name+": written by `go test ./cmd/limitgate -run TestCapacityPage -update` -->\n", "<!-- end -->\n"
		before, rest, found := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no place for %s", planPage, name)
		}
		page = before + begin + text + end + after
	}
	for name, rows := range planTables {
		replace(name, planTable(t, rows))
	}
	picture := filepath.Join(t.TempDir(), "bill.svg")
	sheet := planned(t, planSheet+" --picture "+picture)
	replace("sheet", "```\n$ limitgate plan "+planSheet+"\n"+trimLines(sheet)+"```\n")
	svg, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{planPage: page, planPicture: string(svg)} {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); string(got) != want {
			t.Errorf("%s differs from the planner (%v): run go test ./cmd/limitgate -run TestCapacityPage -update and read the diff", path, err)
		}
	}
}

// trimLines removes the spaces at the ends of lines.
func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}
