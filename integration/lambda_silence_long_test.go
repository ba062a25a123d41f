//go:build long

package integration

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// lambdaStale bounds the time until a proxy reports stale limits after the latest digest
// of a function: 90 seconds, and some to notice.
const lambdaStale = 95 * time.Second

// TestLongLambdaSilence: without a schedule, and with a topic that refuses all calls, a
// proxy reports stale limits, and uses limits pushed meanwhile within two minutes. When
// both are back it no longer reports stale limits.
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
		t.Error("the metrics do not report it")
	}
	await("the change bites", biteTime, func() bool { return limitOfTenant(t, c, "acme") == 700 })
	if n := metric(p.get("/metrics"), "limitgate_config_repairs_total"); n > 2 {
		t.Errorf("the table was read %d times", n)
	}
	s.censor.by(nil)
	s.relay.schedule(t)
	eventually(t, "it is well again", func() bool { return !strings.Contains(version(), "no digest") })
}
