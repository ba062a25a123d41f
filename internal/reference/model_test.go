package reference_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/reference"
)

const (
	ms  int64 = 1_000
	sec       = 1_000 * ms
)

// start is 22:13:00 on 14 November 2023, UTC: the start of a minute.
const start = 1_699_999_980 * sec

// instant returns a time in the model's unit.
func instant(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

func newModel(t *testing.T, file string) *reference.Model {
	t.Helper()
	m, err := reference.New([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// plan returns a file of one plan, which all tenants have.
func plan(limits ...string) string {
	return "version: 1\ndefault_plan: free\nplans:\n  free:\n    - " + strings.Join(limits, "\n    - ") + "\n"
}

func setLimits(t *testing.T, m *reference.Model, file string) {
	t.Helper()
	if err := m.SetLimits([]byte(file)); err != nil {
		t.Fatal(err)
	}
}

// cost is a request of acme with a cost of units.
func cost(units int64) reference.Request {
	return reference.Request{Tenant: "acme", Cost: units}
}

func named(id string, units int64) reference.Request {
	return reference.Request{Tenant: "acme", Cost: units, ID: id}
}

func allowed(id string, limit, remaining, reset int64) reference.Decision {
	return reference.Decision{Allowed: true, Limit: limit, Remaining: remaining, ResetAfter: reset, LimitID: id}
}

func denied(id string, limit, remaining, retry, reset int64) reference.Decision {
	return reference.Decision{Limit: limit, Remaining: remaining, RetryAfter: retry, ResetAfter: reset, LimitID: id}
}

// unlimited is the decision if no limit matched.
var unlimited = reference.Decision{Allowed: true, Limit: -1, Remaining: -1, Policy: true}

func expect(t *testing.T, m *reference.Model, got, want reference.Decision) {
	t.Helper()
	if got != want {
		t.Errorf("got  %+v\nwant %+v\n%s", got, want, m.Trace())
	}
}

func expectAnswer(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("got answer %d, want %d", got, want)
	}
}

func TestTheSampleFileIsRead(t *testing.T) {
	file, err := os.ReadFile("../../examples/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t, string(file))
	// The README's first check. It is made 37.086 s into a minute, and a unit weighs
	// until the end of the next one.
	r := reference.Request{Tenant: "acme", Op: "POST /v1/payments", IP: "203.0.113.7", Cost: 1}
	expect(t, m, m.Check(start+37_086*ms, r), allowed("payments", 600, 599, 82_914))
	r.IP = "192.0.2.9"
	expect(t, m, m.Check(start, r), reference.Decision{RetryAfter: -1, LimitID: "blocked", Policy: true})
}

func TestTheTraceNamesEachLimit(t *testing.T) {
	m := newModel(t, plan(
		`{id: tenant, by: [tenant], rate: 5/s}`,
		`{id: user, by: [tenant, user], rate: 1/s}`,
		`{id: trial, by: [tenant, op], rate: 1/s, mode: shadow}`))
	r := cost(2)
	r.Op = "GET /"
	m.Check(start, r)
	for _, want := range []string{
		`tenant: admits 2 units of token_bucket tenant{tenant: tenant="acme"}, which has 5 of 5`,
		"user: passed over: no user",
		"trial: shadow, denies for -1 ms 2 units",
	} {
		if !strings.Contains(m.Trace(), want) {
			t.Errorf("no %q in the trace:\n%s", want, m.Trace())
		}
	}
}

func TestAFileThatCannotBeReadKeepsTheLimits(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 5/s}`))
	if err := m.SetLimits([]byte(plan(`{id: tenant, by: [tenant], rate: 5/fortnight}`))); err == nil {
		t.Error("a rate of no known period is read")
	}
	expect(t, m, m.Check(start, cost(1)), allowed("tenant", 5, 4, 200))
}
