package reference_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/reference"
)

const twoSlots = `{id: inflight, by: [tenant], algorithm: concurrency, slots: 2}`

func TestSlotsAreHeldUntilTheyAreReleased(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 100/s}`, twoSlots))
	expect(t, m, m.Acquire(start, named("a", 0), 30_000), allowed("inflight", 2, 1, 30_000))
	expect(t, m, m.Acquire(start+1*sec, named("b", 0), 10_000), allowed("inflight", 2, 0, 29_000))
	expect(t, m, m.Acquire(start+1*sec, named("c", 0), 0), denied("inflight", 2, 0, 10_000, 29_000))
	// An acquisition repeated with the same id holds one slot, and takes no unit.
	expect(t, m, m.Acquire(start+1*sec, named("a", 0), 0), allowed("inflight", 2, 1, 30_000))
	expect(t, m, m.Check(start+1*sec, cost(99)), allowed("tenant", 100, 0, 1000))
	expectAnswer(t, m.Release(start+1*sec, "acme", "a"), 1)
	expectAnswer(t, m.Release(start+1*sec, "acme", "a"), 2)
	// The slot is back, and its unit is not.
	expect(t, m, m.Acquire(start+1*sec, named("c", 0), 0), denied("tenant", 100, 0, 10, 1000))
	expect(t, m, m.Acquire(start+2*sec, named("c", 0), 0), allowed("inflight", 2, 0, 60_000))
}

func TestSlotsComeBackByThemselves(t *testing.T) {
	m := newModel(t, plan(twoSlots))
	m.Acquire(start, named("a", 0), 1000)
	m.Acquire(start, named("b", 0), 2000)
	expect(t, m, m.Acquire(start+1*sec-1, named("c", 0), 500), denied("inflight", 2, 0, 1, 1001))
	expect(t, m, m.Acquire(start+1*sec, named("c", 0), 500), allowed("inflight", 2, 0, 1000))
	expectAnswer(t, m.Release(start+1*sec, "acme", "a"), 0)
	expectAnswer(t, m.Renew(start+1*sec, "acme", "a", 0), 0)
}

func TestARenewedSlotIsHeldForLonger(t *testing.T) {
	m := newModel(t, plan(twoSlots))
	m.Acquire(start, named("a", 0), 1000)
	m.Acquire(start, named("b", 0), 60_000)
	expectAnswer(t, m.Renew(start+500*ms, "acme", "a", 0), 1)
	expect(t, m, m.Acquire(start+600*ms, named("c", 0), 0), denied("inflight", 2, 0, 900, 59_400))
	expectAnswer(t, m.Renew(start+1499*ms, "acme", "a", 5000), 1)
	expect(t, m, m.Acquire(start+1500*ms, named("c", 0), 0), denied("inflight", 2, 0, 4999, 58_500))
	expectAnswer(t, m.Release(start+1500*ms, "acme", "a"), 1)
	expectAnswer(t, m.Renew(start+1500*ms, "acme", "a", 0), 0)
	expectAnswer(t, m.Renew(start+1500*ms, "globex", "b", 0), 0)
}

func TestALoweredLimitLosesNoSlot(t *testing.T) {
	m := newModel(t, plan(`{id: inflight, by: [tenant], algorithm: concurrency, slots: 4}`))
	for i, id := range []string{"a", "b", "c"} {
		m.Acquire(start, named(id, 0), int64(i+1)*1000)
	}
	setLimits(t, m, plan(twoSlots))
	// Two of three have to end before one is free.
	expect(t, m, m.Acquire(start, named("d", 0), 0), denied("inflight", 2, 0, 2000, 3000))
	expectAnswer(t, m.Release(start, "acme", "c"), 1)
	expect(t, m, m.Acquire(start, named("d", 0), 0), denied("inflight", 2, 0, 1000, 2000))
}

func TestEstimatesAndSlotsInOnePlan(t *testing.T) {
	m := newModel(t, plan(
		`{id: tokens, by: [tenant], when: {op: chat}, rate: 60000/m}`,
		`{id: requests, by: [tenant, user], group: requests, when: {op: chat}, rate: 20/m, algorithm: sliding_log, cost: 1}`,
		`{id: inflight, by: [tenant], when: {op: work}, algorithm: concurrency, slots: 5}`))
	work := reference.Request{Tenant: "acme", Op: "work", ID: "w"}
	expect(t, m, m.Acquire(start, work, 0), allowed("inflight", 5, 4, 60_000))
	chat := reference.Request{Tenant: "acme", Op: "chat", Cost: 2000, ID: "c", Dims: map[string]string{"user": "u1"}}
	expect(t, m, m.Reserve(start, chat, 0), allowed("requests", 20, 19, 60_000))
	expectAnswer(t, m.Commit(start, "acme", "c", 1500), 1)
	chat.Cost = 58_500
	expect(t, m, m.Peek(start, chat), allowed("tokens", 60_000, 0, 60_000))
}

func TestAnOpWithoutALimitOfConcurrencyIsAdmitted(t *testing.T) {
	m := newModel(t, plan(`{id: inflight, by: [tenant], when: {op: work}, algorithm: concurrency, slots: 5}`))
	expect(t, m, m.Acquire(start, named("a", 0), 0), unlimited)
	expectAnswer(t, m.Renew(start, "acme", "a", 0), 1)
	expectAnswer(t, m.Release(start, "acme", "a"), 1)
}
