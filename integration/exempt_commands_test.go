package integration

import "testing"

// TestExemptCommands: check names the limit that exempts a request, and does not where another one decides about it.
func TestExemptCommands(t *testing.T) {
	p := serve(t, writeLimits(t, `{version: 1, default_plan: p, plans: {p: [{id: t, by: [tenant], rate: 10/h}]}, shared: [
		{id: office, when: {ip: 198.51.100.0/24}, action: allow}, {id: trial, when: {ip: 203.0.113.0/24}, action: allow, mode: shadow}]}`))
	for ip, want := range map[string]string{
		"198.51.100.7": "admitted: office allows it\n",
		"203.0.113.7":  "admitted by t: 9 of 10 left, full again in 6m0s (source store)\n",
	} {
		if out, errs, code := run(t, nil, "check", "--peek", "--addr", p.addr, "acme", "GET", ip); code != 0 || out != want {
			t.Errorf("%s: exit %d, %s%s, want %s", ip, code, out, errs, want)
		}
	}
}
