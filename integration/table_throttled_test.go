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

// tableThrottle is the share of requests to a table that are throttled.
const tableThrottle = .3

// crowdOfTenants returns limits of many tenants and acme. Every second tenant overrides
// its plan.
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

// throttling matches the words for it of AWS, of its SDK and of a program that gives up.
var throttling = regexp.MustCompile(`(?i)throttl|throughput|rate of requests|attempts`)

// pushAndPull pushes a file into an empty table, pulls it back, and compares both with
// the table. It returns how long the push and the pull took.
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

// TestThrottledTable: a table that throttles every third request is slow, but causes no
// error: neither of a push, a pull or a diff, nor of a proxy or a control plane.
func TestThrottledTable(t *testing.T) {
	t.Parallel()
	s := newAtomicSite(t)
	relay := &awstest.Relay{Throttle: tableThrottle}
	throttled := s.behind(relay)
	const tenants = 60
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
		t.Error("only the push was throttled")
	}
}
