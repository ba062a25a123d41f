package limiter_test

import (
	"context"
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

// walked is a store that counts how often its keys are walked.
type walked struct {
	*memory.Store
	resets int
}

func (w *walked) Reset(ctx context.Context, tenant, id string) (int64, error) {
	w.resets++
	return w.Store.Reset(ctx, tenant, id)
}

// TestResetOfATenantWithoutLimits checks that the store's keys are not walked for a
// tenant that no limit counts.
func TestResetOfATenantWithoutLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		spec  storetest.Spec
		walks int
	}{
		"only shared limits": {storetest.Spec{ID: "ip", By: []string{"ip"}, Rate: "1/s"}, 0},
		"a limit by tenant":  {storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/s"}, 1},
		"one that is off":    {storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/s", Mode: "off"}, 1},
	} {
		store := &walked{Store: memory.New(memory.Options{})}
		now := start
		l := clocked(t, store, &now, 0, tc.spec)
		decide(l, limit.Request{Tenant: "t", Cost: 1})
		if _, err := l.Reset(t.Context(), "t", ""); err != nil || store.resets != tc.walks {
			t.Errorf("%s: %d walks, %v, want %d", name, store.resets, err, tc.walks)
		}
	}
}
