package integration

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestMissingDimension: wherever a denial by missing: deny is shown, its reason is the dimension that the
// request lacks, and no cost or store.
func TestMissingDimension(t *testing.T) {
	file := writeLimits(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: hourly, by: [tenant], rate: 1000/h, algorithm: fixed_window}
    - {id: user, by: [tenant, user], rate: 3/2s, burst: 3, missing: deny}
    - {id: most, by: [tenant, user], when: {user: v}, group: most, rate: 9/s, max_cost: 1}
    - {id: pay, by: [tenant], when: {op: "POST /pay"}, group: pay, rate: 9/s}
shared:
  - {id: banned, when: {tenant: evil}, action: deny}
`)
	p, web := serveHTTP(t, file, "--http-gateway", "nginx")
	const denied = "denied by user: the request has no user, which the limit demands: add DIM user VALUE"
	for _, row := range []struct{ words, want string }{
		{"check --addr " + p.addr + " q op - 2", denied + " (source policy)\n"},
		{"explain --addr " + p.addr + " q op - 2", denied + "\n"},
		{"limits explain " + file + " q op - 2", denied + "\n"},
	} {
		out, errs, _ := run(t, nil, strings.Fields(row.words)...)
		if !strings.Contains(out, row.want) || errs != "" {
			t.Errorf("%s: %s%s", row.words, out, errs)
		}
	}
	const spelled = "limitgate check: limits take the op \"post /pay\" for another one than \"POST /pay\": its method is in small letters (warning)\n"
	if out, errs, code := run(t, nil, "check", "--addr", p.addr, "r", "post /pay", "-", "1", "DIM", "user", "u"); code != 0 || errs != spelled {
		t.Errorf("another spelling: exit %d: %s%s", code, out, errs)
	}
	if out, errs, _ := run(t, nil, "check", "--addr", p.addr, "evil", "op", "-", "1", "DIM", "user", "u"); out != "denied by banned, which refuses such requests (source policy)\n" || errs != "" {
		t.Errorf("a ban: %s%s", out, errs)
	}
	if out, errs, _ := run(t, nil, "check", "--addr", p.addr, "q", "op", "-", "5", "DIM", "user", "u"); out != "denied by user, which never admits a cost of 5: it holds 3 units (source store)\n" || errs != "" {
		t.Errorf("a cost above the capacity: %s%s", out, errs)
	}
	if out, errs, _ := run(t, nil, "check", "--addr", p.addr, "q", "op", "-", "2", "DIM", "user", "v"); out != "denied by most, which never admits a cost of 2: its max_cost is lower (source store)\n" || errs != "" {
		t.Errorf("a cost above max_cost: %s%s", out, errs)
	}
	if out, _, _ := run(t, nil, "denied", "--addr", p.addr, "--json"); !strings.Contains(out, `"cost": 2,`) {
		t.Errorf("denied: %s", out)
	}
	a, err := http.Get("http://" + web + "/check?tenant=q&op=op")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	body, err := io.ReadAll(a.Body)
	want := `#abnormal-usage-detected","title":"Request not satisfied due to detection of abnormal request pattern","status":429,"detail":"The limit counts by user, of which the request has no value, or none that is declared.","violated-policies":["user"]}`
	if err != nil || a.StatusCode != http.StatusTooManyRequests || !strings.HasSuffix(strings.TrimSpace(string(body)), want) {
		t.Errorf("/check: %s %s, %v", a.Status, body, err)
	}
}
