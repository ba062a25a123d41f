package reference_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/reference"
)

func TestARaisedRateHelpsAtOnce(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 1/m}`))
	m.Check(start, cost(1))
	setLimits(t, m, plan(`{id: tenant, by: [tenant], rate: 100/s}`))
	// Half a unit came at the old rate, and half a unit takes 5 ms at the new one.
	expect(t, m, m.Check(start+30*sec, cost(1)), denied("tenant", 100, 0, 5, 995))
	expect(t, m, m.Check(start+30_005*ms, cost(1)), allowed("tenant", 100, 0, 1000))
}

func TestAPeekIsNoCheckAfterAChange(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 1/m}`))
	m.Check(start, cost(1))
	setLimits(t, m, plan(`{id: tenant, by: [tenant], rate: 100/s}`))
	expect(t, m, m.Peek(start, cost(1)), denied("tenant", 100, 0, 10, 1000))
	expect(t, m, m.Peek(start+30*sec, cost(1)), denied("tenant", 100, 0, 5, 995))
}

func TestALargerBurstAddsNothing(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 10/s}`))
	m.Check(start, cost(4))
	setLimits(t, m, plan(`{id: tenant, by: [tenant], rate: 10/s, burst: 100}`))
	expect(t, m, m.Check(start, cost(1)), allowed("tenant", 100, 5, 9_500))
	expect(t, m, m.Check(start+1*sec, cost(1)), allowed("tenant", 100, 14, 8_600))
}

func TestALowerBurstClampsContentAndDebt(t *testing.T) {
	limits := func(burst string) string {
		return plan(`{id: tokens, by: [tenant], rate: 60/m, burst: ` + burst + `}`)
	}
	m := newModel(t, limits("60"))
	m.Check(start, cost(20))
	setLimits(t, m, limits("10"))
	expect(t, m, m.Check(start, cost(1)), allowed("tokens", 10, 9, 1_000))
	setLimits(t, m, limits("60"))
	expect(t, m, m.Check(start, cost(1)), allowed("tokens", 60, 8, 52_000))

	m = newModel(t, limits("60"))
	m.Reserve(start, named("a", 1), 0)
	m.Commit(start, "acme", "a", 100) // owes 40
	setLimits(t, m, limits("10"))
	expect(t, m, m.Check(start, cost(1)), denied("tokens", 10, 0, 11_000, 20_000))
	setLimits(t, m, limits("60"))
	expect(t, m, m.Check(start, cost(1)), denied("tokens", 60, 0, 11_000, 70_000))
}

func TestAChangedCountOfAWindow(t *testing.T) {
	for algorithm, want := range map[string][3]reference.Decision{
		"fixed_window": {
			denied("tenant", 5, 0, 30_000, 30_000),
			denied("tenant", 5, 0, 30_000, 30_000),
			allowed("tenant", 20, 11, 30_000),
		},
		"sliding_window": {
			// 8 * (60 - e)/60 + 1 <= 5 where e is 30 s or more.
			denied("tenant", 5, 0, 60_000, 90_000),
			denied("tenant", 5, 0, 60_000, 90_000),
			allowed("tenant", 20, 11, 90_000),
		},
		"sliding_log": {
			denied("tenant", 5, 0, 60_000, 60_000),
			denied("tenant", 5, 0, 60_000, 60_000),
			allowed("tenant", 20, 11, 60_000),
		},
	} {
		limits := func(count string) string {
			return plan(`{id: tenant, by: [tenant], rate: ` + count + `/m, algorithm: ` + algorithm + `}`)
		}
		m := newModel(t, limits("10"))
		m.Check(start+30*sec, cost(8))
		setLimits(t, m, limits("5"))
		expect(t, m, m.Peek(start+30*sec, cost(1)), want[0])
		expect(t, m, m.Check(start+30*sec, cost(1)), want[1])
		setLimits(t, m, limits("20"))
		expect(t, m, m.Check(start+30*sec, cost(1)), want[2])
	}
}

func TestAChangedPeriodOfAWindow(t *testing.T) {
	limits := func(rate string) string {
		return plan(`{id: tenant, by: [tenant], rate: ` + rate + `, algorithm: fixed_window}`)
	}
	m := newModel(t, limits("10/h")) // the hour has 47 minutes left
	m.Reserve(start, named("a", 4), 0)
	m.Check(start, cost(4))
	setLimits(t, m, limits("10/m"))
	expect(t, m, m.Check(start, cost(2)), allowed("tenant", 10, 0, 47*60_000))
	// The two of the new minute come back at its end, the eight with the hour's.
	expect(t, m, m.Check(start, cost(2)), denied("tenant", 10, 0, 60_000, 47*60_000))
	expect(t, m, m.Check(start, cost(3)), denied("tenant", 10, 0, 47*60_000, 47*60_000))
	// Units taken before the change of the period do not come back.
	expectAnswer(t, m.Cancel(start, "acme", "a"), 1)
	expect(t, m, m.Check(start, cost(2)), denied("tenant", 10, 0, 60_000, 47*60_000))
	expect(t, m, m.Check(start+47*60*sec, cost(10)), allowed("tenant", 10, 0, 60_000))
}

func TestWhatStartsAfresh(t *testing.T) {
	for name, changed := range map[string]string{
		"id":        `{id: all, by: [tenant], rate: 10/m}`,
		"by":        `{id: tenant, by: [tenant, op], rate: 10/m, missing: share}`,
		"algorithm": `{id: tenant, by: [tenant], rate: 10/m, algorithm: fixed_window}`,
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 10/m}`))
			m.Check(start, cost(10))
			setLimits(t, m, plan(changed))
			if d := m.Check(start, cost(10)); !d.Allowed {
				t.Errorf("units that were taken before count:\n%s", m.Trace())
			}
		})
	}
}

func TestAnotherPlanKeepsTheBucket(t *testing.T) {
	file := func(plan string) string {
		return `
plans:
  free: [{id: tenant, by: [tenant], rate: 10/m}]
  paid: [{id: tenant, by: [tenant], rate: 60/m}]
tenants:
  acme: {plan: ` + plan + "}\n"
	}
	m := newModel(t, file("free"))
	m.Check(start, cost(8))
	setLimits(t, m, file("paid"))
	expect(t, m, m.Check(start, cost(1)), allowed("tenant", 60, 1, 59_000))
}

func TestAFullBucketIsAsGoodAsUntouched(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 10/s}`))
	m.Check(start, cost(4))
	setLimits(t, m, plan(`{id: tenant, by: [tenant], rate: 10/s, burst: 100}`))
	// It was full of the old burst after 400 ms.
	expect(t, m, m.Peek(start+400*ms-1, cost(10)), denied("tenant", 100, 9, 1, 9_001))
	expect(t, m, m.Peek(start+400*ms, cost(10)), allowed("tenant", 100, 90, 1_000))
}

func TestWindowsThatBeginTogetherAreNotTheSame(t *testing.T) {
	limits := func(rate string) string {
		return plan(`{id: tenant, by: [tenant], rate: ` + rate + `, algorithm: fixed_window}`)
	}
	const hour = start - 13*60*sec // the start of an hour and of a minute
	m := newModel(t, limits("10/h"))
	m.Reserve(hour, named("a", 4), 0)
	setLimits(t, m, limits("10/m"))
	m.Check(hour, cost(2))
	expectAnswer(t, m.Cancel(hour, "acme", "a"), 1)
	expect(t, m, m.Check(hour, cost(4)), allowed("tenant", 10, 0, 3_600_000))
	expect(t, m, m.Peek(hour+60*sec, cost(6)), allowed("tenant", 10, 0, 3_540_000))
}

func TestAChangedPeriodOfASlidingWindow(t *testing.T) {
	limits := func(rate string) string {
		return plan(`{id: tenant, by: [tenant], rate: ` + rate + `, algorithm: sliding_window}`)
	}
	m := newModel(t, limits("10/m"))
	m.Check(start, cost(4))
	m.Check(start+90*sec, cost(5))
	setLimits(t, m, limits("10/15m"))
	// The 5 of the running minute count for the 30 s that are left of it, and the
	// weight of the 4 is gone. The quarter of an hour ends in 30 s too.
	expect(t, m, m.Check(start+90*sec, cost(5)), allowed("tenant", 10, 0, 930_000))
	expect(t, m, m.Check(start+90*sec, cost(5)), denied("tenant", 10, 0, 30_000, 930_000))
	expect(t, m, m.Check(start+120*sec, cost(5)), allowed("tenant", 10, 0, 1_800_000))
}

func TestAChangedPeriodOfALog(t *testing.T) {
	limits := func(rate string) string {
		return plan(`{id: tenant, by: [tenant], rate: ` + rate + `, algorithm: sliding_log}`)
	}
	m := newModel(t, limits("10/m"))
	m.Check(start, cost(4))
	m.Check(start+30*sec, cost(5))
	setLimits(t, m, limits("10/2m"))
	expect(t, m, m.Check(start+60*sec, cost(5)), allowed("tenant", 10, 0, 120_000)) // the 4 are gone
	expect(t, m, m.Check(start+60*sec, cost(5)), denied("tenant", 10, 0, 90_000, 120_000))
	setLimits(t, m, limits("10/40s"))
	expect(t, m, m.Check(start+60*sec, cost(5)), denied("tenant", 10, 0, 10_000, 40_000))
}
