//go:build long

package integration

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

const (
	// throttleRound is how long calls are throttled after each of two changes.
	throttleRound = 45 * time.Second
	// throttledCalls bounds the calls of three processes in a second while they are throttled.
	throttledCalls = 25
)

// TestLongTableThrottled: while AWS throttles many calls, their number stays low, and a
// proxy that lacks a change soon reports stale limits. Afterwards all agree.
func TestLongTableThrottled(t *testing.T) {
	for _, share := range []float64{.3, .95} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			throttleAll(t, share)
		})
	}
}

func throttleAll(t *testing.T, share float64) {
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	people := *s
	g := startGuard(s)
	plane := s.controlPlane()
	all := []*proxy{s.serve(filepath.Join(t.TempDir(), "snapshot")), s.serve(filepath.Join(t.TempDir(), "snapshot"))}
	people.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	enforce(t, "acme", 1000, all...)
	d := startDecisions(t, all[0], "acme")
	pause(digestTime)
	_, before, _ := d.mark()
	g.reset()
	g.rule(func(r request) refusal {
		// The emulator publishes nothing to a topic while the queue of one of its
		// subscriptions is missing.
		if r.operation != "Unsubscribe" && rand.Float64() < share {
			return tooMuch[rand.IntN(len(tooMuch))]
		}
		return refusal{}
	})
	begun := time.Now()
	people.push(tableLimits(t, "acme: {plan: free}"), "ann")
	watchChange(t, all, 100)
	people.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	watchChange(t, all, 1000)
	_, during, n := d.mark()
	calls, sum := g.counts()
	rate := float64(sum) / time.Since(begun).Seconds()
	t.Logf("%d decisions, p99 %s, before %s; %.1f calls a second: %v; %d lines of the control plane", n, during, before, rate, calls, plane.logged())
	if rate > throttledCalls || plane.logged() > 15 || during > 10*before+slowDecision {
		t.Errorf("%.1f calls a second, a p99 of %s, and this log:\n%s", rate, during, plane.output())
	}
	g.rule(func(request) refusal { return refusal{} })
	people.push(tableLimits(t, "acme: {plan: free}"), "bob")
	ended := time.Now()
	for i, p := range all {
		c := p.client()
		for got, _ := check(c, "acme", "-", "-"); got.limit != 100 || p.isStale(); got, _ = check(c, "acme", "-", "-") {
			if time.Since(ended) > agreeWithin {
				t.Fatalf("not within %s: proxy %d gives %d, %s\n%s\n%s", agreeWithin, i, got.limit, p.get("/readyz"), p.output(), plane.output())
			}
			pause(100 * time.Millisecond)
		}
		t.Logf("proxy %d agrees %s after the end", i, time.Since(ended))
	}
	if err := d.err(); err != nil {
		t.Error(err)
	}
}

// watchChange watches for a round how proxies handle a change of acme's limit: one that
// lacks it reports stale limits within staleTime.
func watchChange(t *testing.T, all []*proxy, limit int64) {
	t.Helper()
	changed := time.Now()
	bites, said := make([]time.Duration, len(all)), make([]time.Duration, len(all))
	for since := time.Duration(0); since < throttleRound; since = time.Since(changed) {
		for i, p := range all {
			got, err := check(p.client(), "acme", "-", "-")
			if err != nil {
				t.Fatal(err)
			}
			if bites[i] == 0 && got.limit == limit {
				bites[i] = since
			}
			if said[i] == 0 && p.isStale() {
				said[i] = since
			}
		}
		pause(250 * time.Millisecond)
	}
	t.Logf("%d bites after %v, stale after %v", limit, bites, said)
	for i := range all {
		if bites[i] == 0 && said[i] == 0 {
			t.Errorf("after %s proxy %d neither has the change nor says that it is stale: %s", throttleRound, i, all[i].get("/readyz"))
		}
	}
}
