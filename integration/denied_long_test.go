//go:build long

package integration

import (
	"path/filepath"
	"testing"
	"time"
)

// TestLongTableDenied: while AWS denies one operation to all processes, a change takes
// effect within two minutes, and proxies that do not have it yet soon report stale
// limits. Afterwards they do not.
func TestLongTableDenied(t *testing.T) {
	for _, operation := range []string{"ReceiveMessage", "DeleteMessageBatch", "PublishBatch", "GetRecords", "UpdateItem", "DescribeStream"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			denyOperation(t, operation)
		})
	}
}

// pollTime is how long a call that waited for messages before the denial continues.
const pollTime = 21 * time.Second

func denyOperation(t *testing.T, operation string) {
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	people := *s
	g := startGuard(s)
	plane, p := s.controlPlane(), s.serve(filepath.Join(t.TempDir(), "snapshot"))
	people.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	enforce(t, "acme", 1000, p)
	pause(digestTime)
	g.reset()
	g.deny(accessDenied, operation)
	denied := time.Now()
	pause(pollTime)
	people.push(tableLimits(t, "acme: {plan: free}"), "bob")
	changed, c := time.Now(), p.client()
	var stale time.Duration
	for {
		got, err := check(c, "acme", "-", "-")
		if err != nil {
			t.Fatal(err)
		}
		since := time.Since(changed)
		if got.limit == 100 {
			t.Logf("the change bites after %s, stale after %s", since, stale)
			break
		}
		if stale == 0 && p.isStale() {
			stale = since
		}
		if stale == 0 && since > staleTime || since > mendTime {
			t.Fatalf("after %s the change does not bite, stale since %s: %s\n%s%s", since, stale, p.get("/readyz"), p.output(), plane.output())
		}
		pause(100 * time.Millisecond)
	}
	pause(faultTime - time.Since(denied))
	calls, all := g.counts()
	t.Logf("%d calls in %s: %v; %d and %d lines; %s", all, faultTime, calls, plane.logged(), p.logged(), p.get("/readyz"))
	if all > 15*int(faultTime/time.Second) || plane.logged() > 15 || p.logged() > 15 {
		t.Errorf("too many calls or lines:\n%s%s", plane.output(), p.output())
	}
	g.deny(refusal{})
	mended := time.Now()
	people.push(tableLimits(t, "acme: {plan: gold}"), "bob")
	for got, _ := check(c, "acme", "-", "-"); got.limit != 1000 || p.isStale(); got, _ = check(c, "acme", "-", "-") {
		if time.Since(mended) > mendTime {
			t.Fatalf("not within %s: it gives %d, %s\n%s", mendTime, got.limit, p.get("/readyz"), p.output())
		}
		pause(100 * time.Millisecond)
	}
	t.Logf("it agrees after %s", time.Since(mended))
}
