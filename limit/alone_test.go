package limit

import (
	"testing"

	"github.com/limitgate/limitgate/limit/bucket"
)

// TestAlone checks the decision of one limit: the bucket that denies decides among several, as there
// are while the secret of addresses is replaced, and other limits do not.
func TestAlone(t *testing.T) {
	ip := &Limit{ID: "ip", Mode: ModeShadow, Params: bucket.Params{Capacity: 10}}
	other := &Limit{ID: "other", Params: bucket.Params{Capacity: 10}}
	items := []Item{
		{Limit: other, Source: SourceStore, Verdict: bucket.Verdict{Wait: 9}},
		{Limit: ip, Source: SourceNone},
		{Limit: ip, Source: SourceStore, Verdict: bucket.Verdict{Allowed: true, Remaining: 9}},
		{Limit: ip, Source: SourceBackstop, Verdict: bucket.Verdict{Wait: 5, Reset: 7}},
	}
	d, ok := Alone(items, "ip")
	if want := (Decision{Limit: 10, RetryAfter: 5, ResetAfter: 7, Binding: ip, Source: SourceBackstop, Item: 3}); !ok || d != want {
		t.Errorf("%v, %+v, want %+v", ok, d, want)
	}
	if d, ok := Alone(items[:3], "ip"); !ok || !d.Allowed || d.Remaining != 9 {
		t.Errorf("%v, %+v", ok, d)
	}
	if _, ok := Alone(items[:2], "ip"); ok {
		t.Error("an undecided bucket decides")
	}
}
