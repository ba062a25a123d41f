package proxy

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/syncbuffer"
	"github.com/limitgate/limitgate/limit"
)

// TestUnmetSlots: a slot that no limit of slots bounds has a line if the op is nearly that of such a limit, or if no request of the plan
// meets one.
func TestUnmetSlots(t *testing.T) {
	const limits = `{id: exports, by: [tenant], when: {op: export}, algorithm: concurrency, slots: 2}, {id: scans, by: [tenant], when: {op: "POST /scans*"}, algorithm: concurrency, slots: 2}, {id: gone, by: [tenant], when: {op: import}, algorithm: concurrency, slots: 2, mode: off}, {id: t, by: [tenant], rate: 9/s}`
	const near, unmet = "an op that is nearly the one of a limit of algorithm concurrency", "by requests that no limit of algorithm concurrency is for"
	repeat := func(op string, n int) []string { return slices.Repeat([]string{op}, n) }
	for name, row := range map[string]struct {
		ops   []string
		lines []string
	}{
		"right":             {[]string{"export", "POST /scans/full", "GET /other"}, nil},
		"misspelt":          {repeat("exprt", 300), []string{near + ", which is not for it: nothing bounds how many are held\" limit=exports plan=p condition=export\n"}},
		"another one":       {[]string{"exprt", "POST /scan"}, []string{near, near}},
		"another method":    {[]string{"PUT /scans", "GET /scans"}, nil},
		"of mode off":       {[]string{"imprt"}, nil},
		"others":            {repeat("report", unmetSlots-1), nil},
		"only others":       {repeat("report", 3*unmetSlots), []string{unmet + ": nothing bounds how many are held\" limit=exports plan=p requests=100\n"}},
		"others beside one": {append([]string{"export"}, repeat("report", 3*unmetSlots)...), nil},
		"a long op":         {repeat(strings.Repeat("export", 40), 3), nil},
	} {
		log := new(syncbuffer.Buffer)
		s := newSampledRequests(fixedLimits{set: setOf(t, limits)}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
		for _, op := range row.ops {
			s.look(&limit.Request{Tenant: "acme", Op: op, Cost: 1, Hold: limit.HoldSlot})
		}
		got := strings.SplitAfter(log.String(), "\n")
		got = got[:len(got)-1]
		if !slices.EqualFunc(got, row.lines, strings.Contains) {
			t.Errorf("%s: %s", name, log)
		}
	}
}
