package integration

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/awstest"
)

// tableThrottle is the share of requests to a table that are refused for being too many.
const tableThrottle = .3

// crowdOfTenants are limits of many tenants beside acme, of which each second overrides its
// plan.
func crowdOfTenants(tb testing.TB, n int, acme string) string {
	tb.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "acme: {plan: %s}", acme)
	for i := range n {
		fmt.Fprintf(&b, ", t%07d: {plan: gold", i)
		if i%2 == 0 {
			fmt.Fprintf(&b, ", overrides: {tenant: {rate: %d/s}}", i+2)
		}
		b.WriteString("}")
	}
	return tableLimits(tb, b.String())
}

// throttling is what AWS, its SDK and a program that gives up call it.
var throttling = regexp.MustCompile(`(?i)throttl|throughput|rate of requests|attempts`)

// pushAndPull pushes a file into a table that is empty, pulls it back, and looks for a
// difference of either. It returns how long the pushing and the pulling took.
func (s *site) pushAndPull(file string) (push, pull time.Duration) {
	s.tb.Helper()
	begun := time.Now()
	s.push(file, "ann")
	push, begun = time.Since(begun), time.Now()
	pulled, stderr, code := s.limits("pull", tableURL)
	if code != 0 || stderr != "" {
		s.tb.Fatalf("pull: %d\n%s", code, stderr)
	}
	pull = time.Since(begun)
	for _, same := range []string{file, writeLimits(s.tb, pulled)} {
		if stdout, stderr, code := s.limits("diff", same, tableURL); code != 0 || stdout != "no difference\n" || stderr != "" {
			s.tb.Fatalf("diff: %d\n%.2000s%s", code, stdout, stderr)
		}
	}
	return push, pull
}

// TestThrottledTable: a table that refuses every third request is slow to work with, and
// nobody is told: neither who pushes, pulls and compares, nor a proxy and a control plane.
func TestThrottledTable(t *testing.T) {
	t.Parallel()
	s := newAtomicSite(t)
	relay := &awstest.Relay{Throttle: tableThrottle}
	throttled := s.behind(relay)
	const tenants = 100
	push, pull := throttled.pushAndPull(crowdOfTenants(t, tenants, "free"))
	before := relay.Throttled.Load()
	t.Logf("%d tenants: pushed in %s, pulled in %s, %d requests were throttled", tenants, push.Round(time.Millisecond), pull.Round(time.Millisecond), before)
	if before < tenants*tableThrottle/2 {
		t.Errorf("only %d requests were throttled", before)
	}
	plane, follower := throttled.controlPlane(), throttled.serve(filepath.Join(t.TempDir(), "snapshot"))
	enforce(t, "acme", 100, follower)
	throttled.push(crowdOfTenants(t, tenants, "gold"), "bob")
	enforce(t, "acme", 1000, follower)
	for _, p := range []*proxy{plane, follower} {
		if said := throttling.FindString(p.output()); said != "" {
			t.Errorf("a log says %q:\n%s", said, p.output())
		}
	}
	if ready := follower.get("/readyz"); strings.Contains(ready, "limits_error") {
		t.Errorf("the proxy is %s", ready)
	}
	if relay.Throttled.Load() == before {
		t.Error("what was throttled was only the pushing")
	}
}
