package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestRunningCommands: explain, limits, top, denied and shards print the replies of a running proxy as
// tables, or as JSON; explain prints the rows of limits explain.
func TestRunningCommands(t *testing.T) {
	file := writeLimits(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: tenant, by: [tenant], rate: 1000000/h, on_error: open}
    - {id: pay, by: [tenant, op], when: {op: pay}, rate: 1/h, on_error: closed}
shared: [{id: ban, action: deny, when: {op: never}}]
tenants: {globex: {plan: p}}
`)
	store := redistest.Start(t)
	p := serve(t, file, append([]string{"--redis", store.Addr}, exact...)...)
	pipe := p.client().Pipeline()
	for range 3000 { // top samples one decision in 64
		pipe.Do(t.Context(), "RL.CHECK", "acme", "pay", "-")
		pipe.Do(t.Context(), "RL.CHECK", "admitted", "other", "-")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args []string
		want []string
	}{
		{[]string{"explain", "acme", "pay", "-"}, []string{
			"tenant acme, plan p (the default), limits version ", "denied, bound by pay\n", "LEFT AFTER IT", " of 1000000", "0 of 1", store.Addr, "lg:t:{acme}",
		}},
		{[]string{"explain", "acme", "never", "-"}, []string{"denied, bound by ban\n"}},
		{[]string{"explain", "acme", "-", "-", "2000000"}, []string{"denied for ever, since a cost of 2000000 is more than the limit admits, bound by tenant\n"}},
		{[]string{"limits"}, []string{"limits version ", file, "plan p", "1000000/h burst 1000000", "deny"}},
		{[]string{"limits", "reload"}, []string{"tenant reload is not in it: its plan is the default one, p (the word is the name of a tenant here; a running limitgate loads its limits again on RL.CONFIG RELOAD"}},
		{[]string{"limits", "acme"}, []string{"pay", "op: pay", "tenant acme is not in it: its plan is the default one, p\n"}},
		{[]string{"top"}, []string{"PER_SECOND", "pay", "lg:t:{admitted}"}},
		{[]string{"denied"}, []string{"LIMIT_ID", "pay", "enforce", "acme"}},
		{[]string{"shards"}, []string{"ADDR", "FAILING_MS", store.Addr, "closed"}},
	} {
		args := append([]string{row.args[0], "--addr", p.addr}, row.args[1:]...)
		out, errs, code := run(t, nil, args...)
		for _, want := range row.want {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%v: exit %d, without %q:\n%s%s", args, code, want, out, errs)
			}
		}
		out, errs, code = run(t, nil, append(args, "--json")...)
		var reply any
		if err := json.Unmarshal([]byte(out), &reply); err != nil || code != 0 {
			t.Errorf("%v --json: exit %d, %v:\n%s%s", args, code, err, out, errs)
		}
	}
	for _, name := range []string{"check", "explain"} {
		_, errs, code := run(t, nil, name, "--addr", p.addr, "acme", "other", "-", "1", "DIM", "user", "u1")
		if want := "limitgate " + name + ": no limit of tenant \"acme\" uses the dimension \"user\" (warning)\n"; code != 0 || errs != want {
			t.Errorf("%s with a dimension that no limit uses: exit %d, %s", name, code, errs)
		}
	}
	want := "limitgate limits: tenant \"globexx\" is not listed; did you mean \"globex\"? (warning)\n"
	if _, errs, code := run(t, nil, "limits", "--addr", p.addr, "globexx"); code != 0 || errs != want {
		t.Errorf("limits of a misspelt tenant: exit %d, %s", code, errs)
	}
	if out, _, _ := run(t, nil, "denied", "--addr", p.addr); strings.Contains(out, "admitted") {
		t.Errorf("a bucket that denied nothing is among those that deny:\n%s", out)
	}
	for _, args := range [][]string{{"explain", "acme"}, {"top", "0"}, {"denied", "x"}, {"shards", "x"}, {"limits", "--addr", p.addr, "a", "b"}} {
		if _, errs, code := run(t, nil, args...); code != 64 || !strings.Contains(errs, "--help says more") {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
	if _, errs, code := run(t, nil, "shards", "--addr", store.Addr); code != 1 || !strings.Contains(errs, "subcommand") && !strings.Contains(errs, "is a Redis") {
		t.Errorf("of a Redis: exit %d, %s", code, errs)
	}
}
