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

// TestShadowRefusals: explanations of a running proxy and of a file name the limits in shadow mode that would refuse a request
// whatever is in a bucket.
func TestShadowRefusals(t *testing.T) {
	path := writeLimits(t, `{version: 1, default_plan: p, plans: {p: [
		{id: user, by: [tenant, user], rate: 10/h, missing: deny, mode: shadow}, {id: t, by: [tenant], rate: 10/h, mode: shadow}]},
		shared: [{id: ban, action: deny, when: {op: "GET /admin*"}, mode: shadow}]}`)
	p := serve(t, path)
	for args, want := range map[string]string{
		"acme GET":                      "would deny: user\n",
		"acme GET - 1 DIM user u1":      "would deny: \n",
		"acme GET - 50 DIM user u1":     "would deny: user, t\n",
		"acme GET/admin - 1 DIM user u": "would deny: \n",
		"acme GET_/admin":               "would deny: user, ban\n",
	} {
		words := strings.Fields(args)
		words[1] = strings.ReplaceAll(words[1], "_", " ")
		if len(words) == 2 {
			words = append(words, "-")
		}
		for _, of := range [][]string{{"explain", "--addr", p.addr}, {"limits", "explain", path}} {
			out, errs, code := run(t, nil, append(of, words...)...)
			_, names, _ := strings.Cut(strings.Split(out, "\n")[1], "in shadow mode ")
			if got := "would deny: " + strings.TrimSuffix(names, " would deny") + "\n"; code != 0 || got != want {
				t.Errorf("%v %s: exit %d, %swant %s%s%s", of, args, code, got, want, out, errs)
			}
		}
	}
}
