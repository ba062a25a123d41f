package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestSplitRun sends calls of one check together with coalesced ones, with and without limits
// whose buckets the calls share, and checks that each caller gets its own answer, in one call of
// the script.
func TestSplitRun(t *testing.T) {
	tests := []struct {
		name  string
		specs []spec
		runs  int // of the call
	}{
		{"one limit", []spec{{ID: "tenant", By: []string{"tenant"}, Rate: "10/366d"}}, 2},
		{"fixed limits", []spec{{ID: "tenant", By: []string{"tenant"}, Rate: "10/366d"}, {ID: "more", By: []string{"tenant"}, Rate: "20/366d"}}, 2},
		{"a window", []spec{{ID: "tenant", By: []string{"tenant"}, Rate: "10/366d", Algorithm: "fixed_window"}}, 2},
		{"limits that calls may share", []spec{{ID: "tenant", By: []string{"tenant"}, Rate: "10/366d"}, {ID: "op", By: []string{"tenant", "op"}, Rate: "20/366d"}}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			node := redistest.Start(t)
			s := open(t, node.Addr)
			set := compile(t, test.specs...)
			at := limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}
			var buffers []*limit.Buffer
			var ends []func() bool
			done := make(chan uint64, 1000)
			ask := func(tenant string) {
				b := new(limit.Buffer)
				set.Resolve(&limit.Request{Tenant: tenant, Op: "GET /", Cost: 1}, testAddrs, 0, b)
				buffers, ends = append(buffers, b), append(ends, s.Start(at, b.Items, b.Calls, func(token uint64) { done <- token }, 1))
			}
			for i := range 3 * minSplit {
				ask(fmt.Sprint("t", i))
			}
			for i := 0; i < 3*minSplit; i += 5 { // these are coalesced with the first ones
				ask(fmt.Sprint("t", i))
				ask(fmt.Sprint("t", i))
			}
			before := calls(client(t, node.Addr).Info(t.Context(), "commandstats").Val(), "evalsha")
			s.Flush()
			for range ends {
				<-done
			}
			left := map[string]int64{}
			for i, end := range ends {
				it := &buffers[i].Items[0]
				end()
				key := string(it.Name)
				if left[key] == 0 {
					left[key] = 10
				}
				if left[key]--; it.Source != limit.SourceStore || !it.Allowed || it.Remaining != left[key] {
					t.Errorf("%s: %d left by %s, want %d", key, it.Remaining, it.Source, left[key])
				}
			}
			if n := calls(client(t, node.Addr).Info(t.Context(), "commandstats").Val(), "evalsha") - before; n != 1 {
				t.Errorf("%d script calls, want one", n)
			}
			if n := encodedRuns(set); n != test.runs {
				t.Errorf("%d runs, want %d", n, test.runs)
			}
		})
	}
}

// encodedRuns returns the number of runs into which a batch encodes one check of some tenants and
// two of one.
func encodedRuns(set *limit.Set) int {
	b := newBatch()
	b.reset()
	b.opts.acrossSlots, b.opts.declared = true, true
	for i := range minSplit + 2 {
		var items limit.Buffer
		set.Resolve(&limit.Request{Tenant: fmt.Sprint("t", min(i, minSplit)), Op: "GET /", Cost: 1}, testAddrs, 0, &items)
		nr := new(nodeRequest)
		nr.reset(opTake, route{}, items.Items, time.Now().Add(time.Hour))
		nr.calls = append(nr.calls, items.Calls...)
		b.addRequest(nr, time.Now())
	}
	b.encode(strings.Repeat("0", 40))
	return strings.Count(string(b.out), "\r\ntake\r\n") + strings.Count(string(b.out), "\r\ntakes\r\n")
}
