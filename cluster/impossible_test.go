package cluster

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestImpossibleLevels checks that a bucket with an impossible level affects neither other
// calls of the same batch nor the connection.
func TestImpossibleLevels(t *testing.T) {
	node := redistest.SharedNode(t)
	s, c := open(t, node.Addr), client(t, node.Addr)
	tenant := spec{ID: "n", By: []string{"tenant"}, Rate: "100/d"}
	for name, set := range map[string]*limit.Set{
		"one":     compile(t, tenant),
		"several": compile(t, tenant, spec{ID: "op", By: []string{"tenant", "op"}, Rate: "100/d"}),
	} {
		for i, level := range []float64{math.Inf(-1), math.NaN(), -1e300, 0.5} {
			var b limit.Buffer
			for _, who := range []string{"before", "bad", "behind"} {
				req := limit.Request{Tenant: fmt.Sprint(name, who, i), Op: "x", Cost: 1}
				set.Resolve(&req, testAddrs, 0, &b)
			}
			bad := &b.Items[b.Calls[1].First]
			p := &bad.Limit.Params
			value := fmt.Appendf(nil, "\x01%d/%d/%d;", p.Count, p.Period, p.Capacity)
			value = binary.LittleEndian.AppendUint64(value, math.Float64bits(float64(time.Now().Add(-time.Second).UnixMicro())))
			value = binary.LittleEndian.AppendUint64(value, math.Float64bits(level))
			if err := c.HSet(t.Context(), string(bad.Name[:bad.KeyLen]), string(bad.Name[bad.KeyLen:]), value).Err(); err != nil {
				t.Fatal(err)
			}
			c.Expire(t.Context(), string(bad.Name[:bad.KeyLen]), time.Minute)
			s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
			for j, call := range b.Calls {
				want := limit.SourceStore
				if j == 1 {
					want = limit.SourceNone
				}
				if it := &b.Items[call.First]; it.Source != want {
					t.Errorf("%s, level %g: call %d is decided by %s, want %s: %v", name, level, j, it.Source, want, s.Stats().Undecided)
				}
			}
		}
	}
}
