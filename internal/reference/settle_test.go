package reference_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/reference"
)

func TestACommitGivesTheSurplusBack(t *testing.T) {
	m := newModel(t, plan(
		`{id: tokens, by: [tenant], rate: 60/m}`,
		`{id: requests, by: [tenant], group: requests, rate: 20/m, cost: 1}`)+`
shared:
  - {id: ip, by: [ip], rate: 120/m}
`)
	r := named("a", 30)
	r.IP = "192.0.2.1"
	expect(t, m, m.Reserve(start, r, 0), allowed("tokens", 60, 30, 30_000))
	expectAnswer(t, m.Commit(start, "acme", "a", 10), 1)
	expect(t, m, m.Peek(start, cost(1)), allowed("tokens", 60, 49, 11_000)) // 60 - 10 - 1
	// The shared limit keeps the estimate: 90 of 120 are left.
	expect(t, m, m.Peek(start, reference.Request{Tenant: "globex", IP: "192.0.2.1", Cost: 60}),
		allowed("tokens", 60, 0, 60_000))
	expect(t, m, m.Peek(start, reference.Request{Tenant: "globex", IP: "192.0.2.1", Cost: 30}),
		allowed("tokens", 60, 30, 30_000)) // both have half left
	expect(t, m, m.Peek(start, reference.Request{Tenant: "globex", IP: "192.0.2.1", Cost: 29}),
		allowed("ip", 120, 61, 29_500))
}

func TestALimitWithItsOwnCostIsSettledByACancelOnly(t *testing.T) {
	m := newModel(t, plan(`{id: requests, by: [tenant], rate: 20/m, cost: 1}`))
	m.Reserve(start, named("a", 500), 0)
	expectAnswer(t, m.Commit(start, "acme", "a", 1000), 1)
	expect(t, m, m.Peek(start, cost(1)), allowed("requests", 20, 18, 6_000))
	m.Reserve(start, named("b", 500), 0)
	expectAnswer(t, m.Cancel(start, "acme", "b"), 1)
	expect(t, m, m.Peek(start, cost(1)), allowed("requests", 20, 18, 6_000))
}

func TestADebtIsBoundedByOneCapacity(t *testing.T) {
	m := newModel(t, plan(`{id: tokens, by: [tenant], rate: 60/m}`))
	m.Reserve(start, named("a", 20), 0)
	expectAnswer(t, m.Commit(start, "acme", "a", 70), 1) // 40 - 50
	expect(t, m, m.Check(start, cost(1)), denied("tokens", 60, 0, 11_000, 70_000))
	expect(t, m, m.Check(start+10_999*ms, cost(1)), denied("tokens", 60, 0, 1, 59_001))
	m.Check(start+11*sec, cost(1))
	m.Reserve(start+41*sec, named("b", 30), 0)
	expectAnswer(t, m.Commit(start+41*sec, "acme", "b", 1000), 1)
	expect(t, m, m.Check(start+41*sec, cost(1)), denied("tokens", 60, 0, 61_000, 120_000))
}

func TestAWindowOwesOneCapacity(t *testing.T) {
	for algorithm, want := range map[string]reference.Decision{
		"fixed_window": denied("tokens", 10, 0, 60_000, 60_000),
		// 20 * (60 - e)/60 + 1 <= 10 where e is 33 s or more.
		"sliding_window": denied("tokens", 10, 0, 93_000, 120_000),
		"sliding_log":    denied("tokens", 10, 0, 60_000, 60_000),
	} {
		m := newModel(t, plan(`{id: tokens, by: [tenant], rate: 10/m, algorithm: `+algorithm+`}`))
		m.Reserve(start, named("a", 4), 0)
		expectAnswer(t, m.Commit(start, "acme", "a", 1000), 1)
		expect(t, m, m.Check(start, cost(1)), want)
	}
}

func TestUnitsComeBackToWhereTheyWereTaken(t *testing.T) {
	for name, test := range map[string]struct {
		algorithm string
		after     int64 // until the cancel
		want      reference.Decision
	}{
		"bucket":             {"token_bucket", 0, allowed("tokens", 10, 9, 6_000)},
		"window that runs":   {"fixed_window", 59 * sec, allowed("tokens", 10, 9, 1_000)},
		"window before":      {"fixed_window", 60 * sec, allowed("tokens", 10, 9, 60_000)},
		"sliding runs":       {"sliding_window", 59 * sec, allowed("tokens", 10, 9, 61_000)},
		"sliding weighs":     {"sliding_window", 90 * sec, allowed("tokens", 10, 9, 90_000)},
		"log that counts":    {"sliding_log", 59 * sec, allowed("tokens", 10, 9, 60_000)},
		"log counts no more": {"sliding_log", 60 * sec, allowed("tokens", 10, 9, 60_000)},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, plan(`{id: tokens, by: [tenant], rate: 10/m, algorithm: `+test.algorithm+`}`))
			m.Reserve(start, named("a", 8), 120_000)
			expectAnswer(t, m.Cancel(start+test.after, "acme", "a"), 1)
			expect(t, m, m.Check(start+test.after, cost(1)), test.want)
		})
	}
}

func TestUnitsOfAWindowThatIsOverAreGone(t *testing.T) {
	m := newModel(t, plan(`{id: tokens, by: [tenant], rate: 10/m, algorithm: fixed_window}`))
	m.Reserve(start, named("a", 8), 120_000)
	m.Check(start+60*sec, cost(5))
	expectAnswer(t, m.Cancel(start+61*sec, "acme", "a"), 1)
	expect(t, m, m.Check(start+61*sec, cost(1)), allowed("tokens", 10, 4, 59_000))
}

func TestALogTakesBackTheUnitsOfThatInstant(t *testing.T) {
	m := newModel(t, plan(`{id: tokens, by: [tenant], rate: 10/m, algorithm: sliding_log}`))
	m.Check(start, cost(2))
	m.Reserve(start+10*sec, named("a", 4), 0)
	m.Check(start+20*sec, cost(3))
	expectAnswer(t, m.Commit(start+30*sec, "acme", "a", 1), 1)
	// 2, 1 and 3 are left in the log.
	expect(t, m, m.Peek(start+30*sec, cost(4)), allowed("tokens", 10, 0, 60_000))
	expect(t, m, m.Peek(start+30*sec, cost(7)), denied("tokens", 10, 4, 40_000, 50_000))
}

func TestSettlingTwice(t *testing.T) {
	m := newModel(t, plan(`{id: tokens, by: [tenant], rate: 60/m}`))
	m.Reserve(start, named("a", 30), 1000)
	expectAnswer(t, m.Commit(start, "globex", "a", 10), 0)
	expectAnswer(t, m.Release(start, "acme", "a"), 0)
	expectAnswer(t, m.Commit(start+1*sec-1, "acme", "a", 10), 1)
	expectAnswer(t, m.Commit(start+1*sec, "acme", "a", 0), 2)
	expectAnswer(t, m.Cancel(start+2*sec-2, "acme", "a"), 2)
	expectAnswer(t, m.Cancel(start+2*sec-1, "acme", "a"), 0)
	expect(t, m, m.Peek(start+2*sec, cost(1)), allowed("tokens", 60, 51, 9_000)) // 50 + 2 - 1

	m.Reserve(start+10*sec, named("b", 30), 1000)
	expectAnswer(t, m.Commit(start+11*sec, "acme", "b", 0), 0)
	expectAnswer(t, m.Commit(start+11*sec, "acme", "unknown", 0), 0)
}

func TestARequestWithoutALimitIsDone(t *testing.T) {
	m := newModel(t, "shared:\n  - {id: ip, by: [ip], rate: 10/m}\n")
	expect(t, m, m.Reserve(start, named("a", 5), 1000), unlimited)
	r := named("b", 5)
	r.IP = "192.0.2.1"
	expect(t, m, m.Reserve(start, r, 1000), allowed("ip", 10, 5, 30_000))
	for range 2 {
		expectAnswer(t, m.Commit(start, "acme", "a", 0), 1)
		expectAnswer(t, m.Cancel(start, "acme", "b"), 1)
	}
	r = cost(5)
	r.IP = "192.0.2.1"
	expect(t, m, m.Check(start, r), allowed("ip", 10, 0, 60_000))
}

func TestARefund(t *testing.T) {
	for algorithm, want := range map[string]reference.Decision{
		"token_bucket":   allowed("tokens", 10, 2, 48_000), // 0 + 1 + 6 - 5
		"fixed_window":   allowed("tokens", 10, 2, 24_000),
		"sliding_window": allowed("tokens", 10, 2, 84_000),
		"sliding_log":    allowed("tokens", 10, 2, 60_000),
	} {
		m := newModel(t, plan(`{id: tokens, by: [tenant], rate: 10/m, max_cost: 5, algorithm: `+algorithm+`}`))
		m.Check(start+30*sec, cost(5))
		m.Check(start+30*sec, cost(4))
		if algorithm == "token_bucket" {
			m.Check(start+30*sec, cost(1))
		}
		expectAnswer(t, m.Refund(start+36*sec, cost(6)), 1)
		expect(t, m, m.Check(start+36*sec, cost(5)), want)
	}
}

func TestARefundIsOfThePresentWindow(t *testing.T) {
	m := newModel(t, plan(`{id: tokens, by: [tenant], rate: 10/m, algorithm: sliding_window}`))
	m.Check(start, cost(8))
	m.Check(start+90*sec, cost(1))
	m.Refund(start+90*sec, cost(5))
	// 4 of the previous window weigh, and none of the present one.
	expect(t, m, m.Peek(start+90*sec, cost(1)), allowed("tokens", 10, 5, 90_000))
}

func TestARefundIsNeverAboveTheCapacity(t *testing.T) {
	m := newModel(t, plan(
		`{id: requests, by: [tenant], rate: 10/m, cost: 2}`)+`
shared:
  - {id: ip, by: [ip], rate: 10/m}
`)
	r := cost(9)
	r.IP = "192.0.2.1"
	expect(t, m, m.Check(start, r), allowed("ip", 10, 1, 54_000))
	expectAnswer(t, m.Refund(start, r), 1) // 2 of requests, and none of ip
	expectAnswer(t, m.Refund(start, r), 1)
	expect(t, m, m.Peek(start, cost(1)), allowed("requests", 10, 8, 12_000))
	expect(t, m, m.Peek(start, r), denied("ip", 10, 1, 48_000, 54_000))
	expectAnswer(t, m.Refund(start, reference.Request{IP: "192.0.2.1", Cost: 1}), 0)
}

func TestAReset(t *testing.T) {
	m := newModel(t, plan(
		`{id: tenant, by: [tenant], rate: 10/m}`,
		`{id: user, by: [tenant, user], rate: 5/m}`)+`
shared:
  - {id: ip, by: [ip], rate: 20/m}
`)
	r := reference.Request{Tenant: "acme", IP: "192.0.2.1", Dims: map[string]string{"user": "u1"}, Cost: 5}
	m.Check(start, r)
	m.Reset("acme", "user")
	expect(t, m, m.Check(start, r), allowed("tenant", 10, 0, 60_000))
	m.Reset("acme", "")
	m.Reset("globex", "")
	expect(t, m, m.Peek(start, r), allowed("user", 5, 0, 60_000))
	expect(t, m, m.Peek(start, reference.Request{IP: "192.0.2.1", Cost: 1}), allowed("ip", 20, 9, 33_000))
	m.Reset("", "ip")
	expect(t, m, m.Peek(start, reference.Request{IP: "192.0.2.1", Cost: 1}), allowed("ip", 20, 19, 3_000))
}
