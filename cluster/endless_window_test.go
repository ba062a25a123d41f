package cluster

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestWindowOfYears checks that a planted window, longer than that of any limit, does not
// keep the node busy.
func TestWindowOfYears(t *testing.T) {
	node := redistest.Start(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	set := compile(t, spec{ID: "w", By: []string{"tenant"}, Rate: "100/m", Algorithm: "sliding_window"})
	var b limit.Buffer
	for _, who := range []string{"bad", "good"} {
		req := limit.Request{Tenant: who, Op: "x", Cost: 1}
		set.Resolve(&req, testAddrs, 0, &b)
	}
	bad := &b.Items[b.Calls[0].First]
	value := []byte{1}
	for _, n := range []float64{0, 2e15, 0, 100, 0, 0} {
		value = binary.LittleEndian.AppendUint64(value, math.Float64bits(n))
	}
	c.HSet(t.Context(), string(bad.Name[:bad.KeyLen]), string(bad.Name[bad.KeyLen:]), value)
	s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 3 * time.Second}, b.Items[b.Calls[0].First:b.Calls[0].Last], []limit.Call{{First: 0, Last: 1}})
	s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 3 * time.Second}, b.Items, b.Calls[1:])
	if it := &b.Items[b.Calls[1].First]; it.Source != limit.SourceStore {
		t.Errorf("the bystander is decided by %s: %v", it.Source, s.Stats().Undecided)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}
