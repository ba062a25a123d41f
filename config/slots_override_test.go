package config

import (
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestSlotsOverride: a tenant's override of a limit of concurrency does not affect
// requests to which the limit does not apply.
func TestSlotsOverride(t *testing.T) {
	for action, held := range map[string]bool{"allow": true, "deny": false} {
		set, _, err := ParseLimits("f", []byte(`{version: 1, default_plan: p, plans: {p: [
			{id: rate, by: [tenant], rate: 100/s}, {id: slots, by: [tenant], algorithm: concurrency, slots: 5}]},
			tenants: {acme: {overrides: {slots: {action: `+action+`}}}}}`), limit.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []limit.Hold{limit.HoldNone, limit.HoldSlot} {
			var b limit.Buffer
			set.Resolve(&limit.Request{Tenant: "acme", Cost: 1, Hold: h, ID: "x"}, nil, 0, &b)
			if refused := b.Items[0].Source == limit.SourcePolicy; refused != (h == limit.HoldSlot && !held) || !refused && b.Items[0].Limit.ID != "rate" {
				t.Errorf("%s, hold %d: bound by %s, refused = %v", action, h, b.Items[0].Limit.ID, refused)
			}
		}
	}
}
