package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

// cohorts returns a tenant that is in a canary of a share of them, and one that is not.
func cohorts(share int) (in, out string) {
	for i := 0; in == "" || out == ""; i++ {
		if name := fmt.Sprint("t", i); limit.InTrial(name, share) {
			in = name
		} else {
			out = name
		}
	}
	return in, out
}

// limitOfTenant returns a tenant's limit as a proxy reports it.
func limitOfTenant(t *testing.T, c *redis.Client, tenant string) int64 {
	t.Helper()
	v, err := check(c, tenant, "-", "-")
	if err != nil {
		t.Fatal(err)
	}
	return v.limit
}

// ask sends many checks of a tenant to a proxy.
func ask(t *testing.T, c *redis.Client, tenant string, n int) {
	t.Helper()
	pipe := c.Pipeline()
	for range n {
		pipe.Do(t.Context(), "RL.CHECK", tenant, "-", "-")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestCanary: a changed file is tried on a stable part of the tenants. The proxy takes it
// back by itself when it denies more of the same requests than the file before, and then
// waits for another file. A promoted file applies to all tenants.
func TestCanary(t *testing.T) {
	const share = 2500
	path := writeLimits(t, limitOf("1000/h"))
	p := serve(t, path, append([]string{"--limits-canary", "25%"}, exact...)...)
	c := p.client()
	in, out := cohorts(share)
	version := func() string { return asText(c.Do(context.Background(), "RL.CONFIG", "VERSION").Val()) }

	replace(t, path, limitOf("2000/h"))
	eventually(t, "the trial of 2000/h", func() bool { return limitOfTenant(t, c, in) == 2000 })
	if n := limitOfTenant(t, c, out); n != 1000 {
		t.Errorf("a tenant that is not in the canary has %d", n)
	}
	if said := version(); !strings.Contains(said, "on 25 % of the tenants") {
		t.Errorf("RL.CONFIG VERSION says %s", said)
	}
	ask(t, c, in, 500)
	if n := limitOfTenant(t, c, in); n != 2000 {
		t.Errorf("limits that deny nothing are taken back: %d\n%s", n, p.output())
	}
	if err := c.Do(t.Context(), "RL.CONFIG", "PROMOTE").Err(); err != nil {
		t.Fatal(err)
	}
	if n := limitOfTenant(t, c, out); n != 2000 {
		t.Errorf("after they are promoted others have %d", n)
	}

	replace(t, path, limitOf("10/h"))
	eventually(t, "the trial of 10/h", func() bool { return limitOfTenant(t, c, in) == 10 })
	if metrics := p.get("/metrics"); !strings.Contains(metrics, "limitgate_trial_share 0.25\n") {
		t.Error("the metrics do not show the canary")
	}
	ask(t, c, in, 300)
	eventually(t, "10/h taken back", func() bool { return limitOfTenant(t, c, in) == 2000 })
	for _, said := range []string{version(), p.get("/readyz"), p.output()} {
		if !strings.Contains(said, "the new limits deny 9") || !strings.Contains(said, "the old ones would have denied 0.0 %") {
			t.Errorf("no reason is reported: %s", said)
		}
	}
	if err := c.Do(t.Context(), "RL.CONFIG", "RELOAD").Err(); err == nil || !strings.Contains(err.Error(), "waits for another file") {
		t.Errorf("the file that was taken back is loaded again: %v", err)
	}
	if n := limitOfTenant(t, c, in); n != 2000 {
		t.Errorf("the file that was taken back is tried again: %d", n)
	}
	if err := c.Do(t.Context(), "RL.CONFIG", "PROMOTE").Err(); err == nil || !strings.Contains(err.Error(), "no limits are on trial: version ") || !strings.Contains(err.Error(), " was taken back") {
		t.Errorf("limits that were taken back are promoted: %v", err)
	}

	replace(t, path, limitOf("3000/h"))
	eventually(t, "the trial of 3000/h", func() bool { return limitOfTenant(t, c, in) == 3000 })
	if err := c.Do(t.Context(), "RL.CONFIG", "ABORT").Err(); err != nil {
		t.Fatal(err)
	}
	if n := limitOfTenant(t, c, in); n != 2000 || !strings.Contains(version(), "RL.CONFIG ABORT") {
		t.Errorf("after ABORT it is %d, %s", n, version())
	}
	replace(t, path, limitOf("2000/h")) // the original content: no canary is pending any more
	eventually(t, "the file that was before", func() bool { return !strings.Contains(version(), "RL.CONFIG ABORT") })
}
