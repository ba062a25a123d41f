package integration

import (
	"strings"
	"testing"
)

// TestExplainSlots: an explanation has the free slots, as the explained request takes none.
func TestExplainSlots(t *testing.T) {
	p := serve(t, writeLimits(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: tenant, by: [tenant], rate: 10/s}
    - {id: job, by: [tenant], algorithm: concurrency, slots: 1}
`))
	remaining := func() string {
		out, _, _ := run(t, nil, "explain", "--addr", p.addr, "acme", "-", "-")
		_, row, _ := strings.Cut(out, "only RL.ACQUIRE takes its slots")
		return strings.Join(strings.Fields(row)[:3], " ")
	}
	if got := remaining(); got != "1 of 1" {
		t.Errorf("free: %s", got)
	}
	if err := p.client().Do(t.Context(), "RL.ACQUIRE", "acme", "-", "-").Err(); err != nil {
		t.Fatal(err)
	}
	if got := remaining(); got != "0 of 1" {
		t.Errorf("held: %s", got)
	}
}

// TestExplainDenied: where a request is denied, an explanation has the units that a limit which admits it keeps.
func TestExplainDenied(t *testing.T) {
	p := serve(t, writeLimits(t, `{version: 1, default_plan: p, plans: {p: [{id: tenant, by: [tenant], rate: 10/h}, {id: op, by: [tenant, op], rate: 3/h}]}}`))
	for _, want := range []string{"admitted", "denied"} {
		out, _, _ := run(t, nil, "explain", "--addr", p.addr, "acme", "GET", "-", "2")
		if want == "admitted" {
			if !strings.Contains(out, " 8 of 10 ") || !strings.Contains(out, " 1 of 3 ") {
				t.Errorf("before: %s", out)
			}
			if err := p.client().Do(t.Context(), "RL.CHECK", "acme", "GET", "-", "2").Err(); err != nil {
				t.Fatal(err)
			}
		} else if !strings.Contains(out, " 8 of 10 ") || !strings.Contains(out, " 1 of 3 ") || !strings.Contains(out, "denied, bound by op") {
			t.Errorf("after: %s", out)
		}
	}
}
