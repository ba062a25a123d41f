package integration

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestIdleOutage: after an outage the store is asked again although no check comes, only readers.
func TestIdleOutage(t *testing.T) {
	node := redistest.Start(t)
	p := serve(t, writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: t, by: [tenant], rate: 500/h, on_error: closed}]}}"), "--redis", node.Addr)
	c := p.client()
	shard := func() string {
		out, _, _ := run(t, nil, "shards", "--addr", p.addr)
		return out
	}
	peek := func() string { return c.Do(t.Context(), "RL.PEEK", "acme", "-", "-").String() }
	if _, err := check(c, "acme", "-", "-"); err != nil {
		t.Fatal(err)
	}
	node.Kill()
	eventually(t, "the breaker opens", func() bool {
		_, _ = check(c, "acme", "-", "-")
		return strings.Contains(shard(), " open ")
	})
	node.Restart()
	eventually(t, "the store decides again", func() bool { return strings.Contains(peek(), "store]") })
	if out := shard(); !strings.Contains(out, " closed ") || strings.Contains(out, "refused") {
		t.Error(out)
	}
}
