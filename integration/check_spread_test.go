package integration

import (
	"regexp"
	"testing"
	"time"
)

var spreadDenial = regexp.MustCompile(`^denied by exports: 0 of 5 left, retry after (\S+), (\S+) of it to spread callers \(source store\)\n$`)

// TestCheckNamesSpread: limitgate check says which part of a wait keeps callers from coming back together, and
// nothing of that where waits are not spread.
func TestCheckNamesSpread(t *testing.T) {
	limits := writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: exports, by: [tenant], rate: 5/h}]}}")
	for _, jitter := range []string{"30s", "0s"} {
		p := serve(t, limits, "--retry-jitter", jitter)
		deny := func() string {
			out, errs, _ := run(t, nil, "check", "--addr", p.addr, "acme", "-", "-", "5")
			if errs != "" {
				t.Error(errs)
			}
			return out
		}
		deny()
		out := deny()
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
