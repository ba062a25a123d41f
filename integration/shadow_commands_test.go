package integration

import (
	"strings"
	"testing"
)

// TestShadowCommands: where all limits are in shadow mode, check, explain and top name them and what they would do.
func TestShadowCommands(t *testing.T) {
	p := serve(t, writeLimits(t, "{version: 1, default_plan: p, plans: {p: [{id: t, by: [tenant], rate: 10/h, mode: shadow}]}}"))
	for _, row := range []struct {
		args string
		want []string
	}{
		{"explain acme GET - 5", []string{"admitted: no enforced limit applies\n", " watches  "}},
		{"check acme GET - 9", []string{"admitted: no enforced limit applies; limitgate explain has those in shadow mode\n"}},
		{"explain acme GET - 5", []string{"admitted: no enforced limit applies; in shadow mode t would deny\n", " watches, would deny "}},
		{"check acme GET - 5", []string{"admitted: no enforced limit applies"}},
		{"top", []string{"most checks, in the last 10 to 20 s:\nPER_SECOND", "shadow limits, if they were enforced:\nPER_SECOND"}},
	} {
		words := strings.Fields(row.args)
		out, errs, code := run(t, nil, append([]string{words[0], "--addr", p.addr}, words[1:]...)...)
		for _, want := range row.want {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%s: exit %d, %q is not in\n%s%s", row.args, code, want, out, errs)
			}
		}
	}
}
