package replay

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestLocalPlacement: a limit of each proxy by itself is decided as by one proxy.
func TestLocalPlacement(t *testing.T) {
	set, _, err := config.ParseLimits("f", []byte("{version: 1, default_plan: p, plans: {p: [{id: own, by: [tenant], rate: 3/h, store: local}]}}"), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLocal(set, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		at := time.Date(2026, 3, 1, 10, 0, i, 0, time.UTC)
		out, err := l.decide(t.Context(), []asked{{at: at, req: limit.Request{Tenant: "t", Cost: 1}}})
		if err != nil || out[0].allowed != (i < 3) || !out[0].allowed && out[0].limitID != "own" {
			t.Errorf("request %d: %+v, %v", i, out, err)
		}
	}
}
