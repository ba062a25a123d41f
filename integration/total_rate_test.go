package integration

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestTotalRate: where --backstop-total-rate denies a request that its limits admit, no reply blames one of
// them, and RL.PEEK, RL.EXPLAIN and the commands foresee and name the same cause. A client with its own limit
// gets the numbers of that.
func TestTotalRate(t *testing.T) {
	limits := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: tenant, by: [tenant], rate: 1000/s, burst: 3000}]}}")
	// More than a second's units are never admitted, so that no time matters.
	p, web := serveHTTP(t, limits, "--http-gateway", "nginx", "--redis", "127.0.0.1:1", "--backstop-total-rate", "5")
	c := p.client()
	reply := func(args ...any) []any {
		t.Helper()
		all, err := c.Do(t.Context(), args...).Slice()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return all
	}
	for _, name := range []string{"RL.CHECK", "RL.PEEK"} {
		got := reply(name, "acme", "-", "-", 6)
		if wait := got[3].(int64); wait < 1000 {
			t.Errorf("%s: wait %d", name, wait)
		}
		got[3] = nil
		if want := []any{int64(0), int64(-1), int64(-1), nil, int64(0), "", "backstop"}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := reply("RL.PEEK", "acme", "-", "-", 6, "LIMIT", "tenant"); got[0] != int64(1) || got[1] != int64(3000) || got[5] != "tenant" {
		t.Errorf("of the limit alone: %v", got)
	}
	if got := reply("CL.THROTTLE", "key", 9, 10, 60, 6); got[0] != int64(1) || got[1] != int64(10) {
		t.Errorf("CL.THROTTLE: %v", got)
	}
	const cause = "--backstop-total-rate, which bounds all tenants together where the store does not decide"
	for _, row := range []struct{ command, want string }{
		{"check acme - - 6", "denied by " + cause + ": retry after 1"},
		{"check --peek acme - - 6", "denied by " + cause + ": retry after 1"},
		{"explain acme - - 6", "\ndenied by " + cause + "\n"},
		{"denied", "--backstop-total-rate"},
	} {
		args := strings.Fields(row.command)
		out, errs, _ := run(t, nil, append([]string{args[0], "--addr", p.addr}, args[1:]...)...)
		if !strings.Contains(out, row.want) || strings.Contains(out, "left,") {
			t.Errorf("%s: %s%s, want %q", row.command, out, errs, row.want)
		}
	}
	if m := p.get("/metrics"); !strings.Contains(m, `limitgate_decisions_total{limit="",mode="enforce",source="backstop",verdict="deny"} `) {
		t.Errorf("no denial without a limit in %s", m)
	}
	var body []byte
	for i, status := 0, 0; status != http.StatusTooManyRequests && i < 1000; i++ {
		a, err := http.Get("http://" + web + "/check?tenant=acme&op=op")
		if err != nil {
			t.Fatal(err)
		}
		status = a.StatusCode
		body, _ = io.ReadAll(a.Body)
		_ = a.Body.Close()
	}
	if text := string(body); !strings.Contains(text, "#temporary-reduced-capacity") || !strings.Contains(text, "Come again in ") || strings.Contains(text, "violated") {
		t.Errorf("/check: %s", text)
	}
	eventually(t, "a line of the log", func() bool {
		return strings.Contains(p.output(), `msg="--backstop-total-rate denied requests that their limits admit" denied=`)
	})
}
