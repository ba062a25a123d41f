package proxy

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/internal/syncbuffer"
	"github.com/limitgate/limitgate/limit"
)

// TestLookBudget: a burst of looks, some in each second from then on, and none more.
func TestLookBudget(t *testing.T) {
	var b lookBudget
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name    string
		passes  time.Duration
		asks, n int
	}{
		{"the burst", 0, lookBurst + 50, lookBurst},
		{"none at once", 0, 10, 0},
		{"a second", time.Second, 50, looksPerSecond},
		{"a clock that is set back", -time.Hour, 50, 0},
		{"a second behind that", time.Second, 50, looksPerSecond},
		{"a year", 365 * 24 * time.Hour, lookBurst + 50, lookBurst},
	} {
		now = now.Add(row.passes)
		n := 0
		for range row.asks {
			if b.take(now) {
				n++
			}
		}
		if n != row.n {
			t.Errorf("%s: %d looks, want %d", row.name, n, row.n)
		}
	}
}

// TestLooksOfBusyTenant: once the requests of a busy tenant have used up the burst, a new set renews no look, and a mistake has its line
// when a second later a look is at it.
func TestLooksOfBusyTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(syncbuffer.Buffer)
		const limits = `{id: shop, by: [tenant], when: {host: shop.example}, rate: 1/s}, {id: exports, by: [tenant], when: {op: export}, algorithm: concurrency, slots: 2}`
		set := setOf(t, limits)
		s := newSampledRequests(func() *limit.Set { return set }, false, slog.New(slog.NewTextHandler(log, nil)))
		busy := func(n int) {
			for range n {
				s.look(&limit.Request{Tenant: "busy", Op: "GET /x", Dims: []limit.Dim{{Name: "host", Value: "shop.example"}}})
				s.look(&limit.Request{Tenant: "busy", Op: "export", Cost: 1, Hold: limit.HoldSlot})
			}
		}
		wrong := func() {
			s.look(&limit.Request{Tenant: "t", Op: "GET /x", Dims: []limit.Dim{{Name: "host", Value: "Shop.example"}}})
			s.look(&limit.Request{Tenant: "t", Op: "exprt", Cost: 1, Hold: limit.HoldSlot})
		}
		busy(lookBurst)
		set = setOf(t, limits) // of the same text
		if wrong(); log.String() != "" {
			t.Errorf("a look beyond the burst: %s", log)
		}
		for range 100 { // 10 seconds, of which each look is at the request that comes first
			time.Sleep(100 * time.Millisecond)
			wrong()
			busy(10)
		}
		for _, want := range []string{"dimension=host limit=shop", "limit=exports plan=p condition=export"} {
			if strings.Count(log.String(), want) != 1 {
				t.Errorf("%d lines with %s:\n%s", strings.Count(log.String(), want), want, log)
			}
		}
	})
}
