package storetest

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// credit checks that refunded units can be taken again, never more than a bucket's
// capacity, and that buckets that tenants share get none.
func credit(t *testing.T, store limiter.Store) {
	for i, spec := range counting {
		shared := Spec{ID: "shared", By: []string{"op"}, Rate: "1000/366d", Algorithm: "fixed_window"}
		l := newLimiter(t, store, Compile(t, spec, shared))
		req := func(cost int64) limit.Request {
			return limit.Request{Tenant: fmt.Sprint("credit-", i), Op: fmt.Sprint("credit-", i), Cost: cost}
		}
		left := func() (own, shared int64) {
			var b limiter.Batch
			b.Requests = append(b.Requests, req(1))
			l.Peek(&b)
			return b.Items(0)[0].Remaining + 1, b.Items(0)[1].Remaining + 1
		}
		give := func(cost int64) {
			var b limiter.Batch
			r := req(cost)
			if returned, answered := l.Credit(&b, &r); !returned || !answered {
				t.Errorf("%s: nothing was given back", spec.Algorithm)
			}
		}
		ask(l, req(30))
		for _, step := range []struct{ back, left int64 }{{10, 15}, {100, 35}, {1, 35}} {
			give(step.back)
			if own, of := left(); own != step.left || of != 1000-30 {
				t.Errorf("%s: after %d of 30 came back there are %d of 35, and %d of 1000 where tenants share", spec.Algorithm, step.back, own, of)
			}
		}
	}
	l := newLimiter(t, store, Compile(t, Spec{ID: "shared", By: []string{"op"}, Rate: "10/h"}))
	var b limiter.Batch
	if returned, answered := l.Credit(&b, &limit.Request{Tenant: "credit-none", Op: "x", Cost: 1}); returned || !answered {
		t.Error("a tenant without a bucket of its own was given something")
	}
}
