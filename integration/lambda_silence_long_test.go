//go:build long

package integration

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lambdaStale bounds how long a proxy may take to say that it is stale after the latest digest
// of a function: 90 seconds, and some to find that out.
const lambdaStale = 95 * time.Second

// TestLongLambdaSilence: with the schedule gone, and a topic that takes nothing, a proxy says that
// it is stale, and uses what was pushed since within two minutes; with both back it says so no
// more.
func TestLongLambdaSilence(t *testing.T) {
	s := newLambdaScene(t)
	s.start(0)
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"))
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	enforce(t, "acme", 1000, p)
	s.relay.schedule(t)
	began := time.Now()
	s.censor.by(func(string, int) ruling { return refused })
	s.push(tableLimits(t, "acme: {plan: gold, overrides: {tenant: {rate: 700/s}}}"), "bob")
	c := p.client()
	version := func() string { return asText(c.Do(context.Background(), "RL.CONFIG", "VERSION").Val()) }
	await := func(what string, within time.Duration, ok func() bool) {
		t.Helper()
		for !ok() {
			if time.Since(began) > within {
				t.Fatalf("not within %s: %s\n%s", within, what, p.output())
			}
			pause(100 * time.Millisecond)
		}
		t.Logf("%s after %s", what, time.Since(began).Round(100*time.Millisecond))
	}
	await("it says that it is stale", lambdaStale, func() bool { return strings.Contains(version(), "no digest of the limits has come") })
	if limitOfTenant(t, c, "acme") == 1000 && metric(p.get("/metrics"), "limitgate_config_stale") != 1 {
		t.Error("the metrics do not say so")
	}
	await("the change bites", biteTime, func() bool { return limitOfTenant(t, c, "acme") == 700 })
	if n := metric(p.get("/metrics"), "limitgate_config_repairs_total"); n > 2 {
		t.Errorf("the table was read %d times", n)
	}
	s.censor.by(nil)
	s.relay.schedule(t)
	eventually(t, "it is well again", func() bool { return !strings.Contains(version(), "no digest") })
}
