package integration

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

var timeOfDay = regexp.MustCompile(`(?m)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// TestHistory: what was changed is said in a line for each change, the newest last.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.archive()
	plane := s.controlPlane("--audit-bucket", auditBucket)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	s.push(tableLimits(t, "acme: {plan: gold, overrides: {tenant: {burst: 20}}}"), "bob")
	s.push(tableLimits(t, ""), "ann")
	const want = `T  version 1  by ann  add     +plan: free
T  version 2  by bob  change  +overrides.tenant.burst: 20, plan: free -> gold
T  version 3  by ann  delete  -overrides.tenant.burst: 20, -plan: gold
`
	var got, errs string
	eventually(t, "the history is there", func() bool {
		got, errs, _ = s.limits("history", "--bucket", auditBucket, "acme")
		return strings.Contains(got, "version 3")
	})
	if got = timeOfDay.ReplaceAllString(got, "T"); got != want || errs != "" {
		t.Errorf("got\n%s%swant\n%s", got, errs, want)
	}
	asJSON, _, _ := s.limits("history", "--bucket", auditBucket, "--json", "TENANT#acme")
	same, _, code := runCommand(t, nil, s.command("audit", "--bucket", auditBucket, "--json", "acme"))
	if code != 0 || asJSON != same || strings.Count(asJSON, `"key":"TENANT#acme"`) < 3 {
		t.Errorf("as JSON the history is\n%sand the audit %d\n%s", asJSON, code, same)
	}
	if _, errs, code := s.limits("history", "--bucket", auditBucket, "nobody"); code != 1 || !strings.Contains(errs, "nothing is written down about TENANT#nobody in limits-audit") {
		t.Errorf("the history of nobody: %d\n%s", code, errs)
	}
	if err := plane.stop(syscall.SIGTERM); err != nil {
		t.Errorf("the control plane: %v\n%s", err, plane.output())
	}
}
