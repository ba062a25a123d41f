package integration

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

var spreadDenial = regexp.MustCompile(`^denied by exports: 0 of 5 left, retry after (\S+), (\S+) of it to spread callers \(source store\)\n$`)

// checkFive checks five units by limitgate check, and returns its output.
func checkFive(t *testing.T, p *proxy) string {
	t.Helper()
	out, errs, _ := run(t, nil, "check", "--addr", p.addr, "acme", "-", "-", "5")
	if errs != "" {
		t.Error(errs)
	}
	return out
}

// TestCheckNamesSpread: limitgate check says which part of a wait keeps callers from coming back together, and
// nothing of that where waits are not spread.
func TestCheckNamesSpread(t *testing.T) {
	limits := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: exports, by: [tenant], rate: 5/h}]}}")
	for _, jitter := range []string{"30s", "0s"} {
		p := serve(t, limits, "--retry-jitter", jitter)
		checkFive(t, p)
		out := checkFive(t, p)
		named := spreadDenial.FindStringSubmatch(out)
		if (named != nil) != (jitter != "0s") {
			t.Fatalf("--retry-jitter %s: %s", jitter, out)
		}
		if named == nil {
			continue
		}
		wait, err := time.ParseDuration(named[1])
		spread, err2 := time.ParseDuration(named[2])
		// The first check began the hour.
		if units := wait - spread; err != nil || err2 != nil || spread > 30*time.Second || units > time.Hour || units < time.Hour-time.Minute {
			t.Errorf("the units are there after %s: %s", units, out)
		}
	}
}

// TestCheckNamesNoSpreadWithoutStore: a limit that fails closed has a short wait while the store does not answer, which is no part of that of
// a denial from before.
func TestCheckNamesNoSpreadWithoutStore(t *testing.T) {
	store := redistest.Start(t)
	limits := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: exports, by: [tenant], rate: 5/h, on_error: closed}]}}")
	p := serve(t, limits, "--redis", store.Addr, "--retry-jitter", "30s")
	checkFive(t, p)
	if out := checkFive(t, p); !spreadDenial.MatchString(out) {
		t.Fatalf("with the store: %s", out)
	}
	store.CLI(t, "CLIENT", "PAUSE", "5000", "ALL")
	if out := checkFive(t, p); !strings.HasPrefix(out, "denied by exports: 0 of 5 left, retry after ") || !strings.HasSuffix(out, "(source cache)\n") || strings.Contains(out, "spread") {
		t.Errorf("without the store: %s", out)
	}
}
