package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestWish checks that a call with LeaseWanted is granted as many of these units as fit,
// all or nothing in every bucket, and that the units left do not include them.
func TestWish(t *testing.T) {
	s := open(t, redistest.SharedNode(t).Addr)
	for i, c := range []struct {
		tenant, op   int64 // units of the two limits
		wanted, cost int64
		more         int64
		allowed      bool
	}{
		{10, 10, 5, 1, 5, true},
		{10, 4, 5, 1, 3, true}, // the narrower bucket bounds both
		{10, 9, 5, 2, 3, true}, // four checks of 2 fit into 9
		{10, 1, 5, 1, 0, true}, // nothing beyond the check itself
		{10, 10, 5, 11, 0, false},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			set := compile(t,
				spec{ID: "tenant", By: []string{"tenant"}, Rate: fmt.Sprintf("%d/366d", c.tenant)},
				spec{ID: "op", By: []string{"tenant", "op"}, Rate: fmt.Sprintf("%d/366d", c.op), Algorithm: "fixed_window"},
			)
			req := limit.Request{Tenant: fmt.Sprint("wanted-", i), Op: "x", Cost: c.cost}
			var b limit.Buffer
			set.Resolve(&req, testAddrs, 0, &b)
			for j := range b.Items {
				b.Items[j].LeaseWanted = c.wanted
			}
			s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
			for j, units := range []int64{c.tenant, c.op} {
				it := &b.Items[j]
				taken := int64(0)
				if c.allowed {
					taken = (1 + c.more) * c.cost
				}
				if it.Source != limit.SourceStore || it.Allowed != c.allowed || it.LeaseGranted != c.more || it.Remaining != units-taken {
					t.Errorf("%s: %+v, want %d more and %d left", it.Limit.ID, it, c.more, units-taken)
				}
			}
		})
	}
}

// TestWishesComeLast checks that lease units are granted after all checks of a batch.
func TestWishesComeLast(t *testing.T) {
	const units, size = 10, 20
	s := open(t, redistest.SharedNode(t).Addr)
	set := compile(t, spec{ID: "tenant", By: []string{"tenant"}, Rate: fmt.Sprint(units, "/366d")})
	at := limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}
	done := make(chan uint64, size)
	buffers := make([]limit.Buffer, size)
	var ends []func() bool
	for i := range buffers {
		b := &buffers[i]
		set.Resolve(&limit.Request{Tenant: "leases-last", Cost: 1}, testAddrs, 0, b)
		if i == 0 {
			b.Items[0].LeaseWanted = 9
		}
		ends = append(ends, s.Start(at, b.Items, b.Calls, func(token uint64) { done <- token }, uint64(i)))
	}
	s.Flush()
	for range buffers {
		<-done
	}
	for i, end := range ends {
		it := &buffers[i].Items[0]
		if end() || it.Source != limit.SourceStore || it.Allowed != (i < units) || it.LeaseGranted != 0 {
			t.Errorf("check %d: %+v by %s, %d more", i, it.Verdict, it.Source, it.LeaseGranted)
		}
	}
}
