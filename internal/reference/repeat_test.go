package reference_test

import "testing"

func TestARepeatedCheckIsChargedOnce(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 10/m}`))
	first := allowed("tenant", 10, 8, 12_000)
	expect(t, m, m.Check(start, named("a", 2)), first)
	expect(t, m, m.Check(start, cost(1)), allowed("tenant", 10, 7, 18_000))
	expect(t, m, m.Check(start+10*sec-1, named("a", 2)), first)
	// 10 s refill 1 2/3 units, so 8 2/3 are there before, and 6 2/3 after it.
	expect(t, m, m.Check(start+10*sec, named("a", 2)), allowed("tenant", 10, 6, 20_000))
}

func TestADenialIsDecidedAnew(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 10/s}`))
	m.Check(start, cost(10))
	expect(t, m, m.Check(start, named("a", 1)), denied("tenant", 10, 0, 100, 1000))
	expect(t, m, m.Check(start+100*ms, named("a", 1)), allowed("tenant", 10, 0, 1000))
	expect(t, m, m.Check(start+100*ms, named("a", 1)), allowed("tenant", 10, 0, 1000))
}

func TestAnIDNamesOneRequest(t *testing.T) {
	m := newModel(t, plan(
		`{id: tenant, by: [tenant], rate: 10/s}`,
		`{id: user, by: [tenant, user], rate: 100/s}`))
	expect(t, m, m.Check(start, named("a", 1)), allowed("tenant", 10, 9, 100))
	expect(t, m, m.Check(start, named("a", 2)), allowed("tenant", 10, 7, 300))
	expect(t, m, m.Check(start, named("a", 1)), allowed("tenant", 10, 6, 400)) // not as the last time
	r := named("a", 1)
	r.Dims = map[string]string{"user": "u1"}
	expect(t, m, m.Check(start, r), allowed("tenant", 10, 5, 500))
	r.Tenant = "globex"
	expect(t, m, m.Check(start, r), allowed("tenant", 10, 9, 100))
	// A reservation of the same id is another request.
	expect(t, m, m.Reserve(start, named("a", 1), 0), allowed("tenant", 10, 4, 600))
	expect(t, m, m.Reserve(start+50*ms, named("a", 1), 0), allowed("tenant", 10, 4, 600))
}

func TestTheCostIsPartOfARepeatedRequest(t *testing.T) {
	m := newModel(t, plan(`{id: requests, by: [tenant], rate: 10/s, cost: 1}`))
	expect(t, m, m.Check(start, named("a", 5)), allowed("requests", 10, 9, 100))
	expect(t, m, m.Check(start, named("a", 5)), allowed("requests", 10, 9, 100))
	expect(t, m, m.Check(start, named("a", 6)), allowed("requests", 10, 8, 200))
}

func TestAShadowIsNoPartOfARepeatedRequest(t *testing.T) {
	limits := func(mode string) string {
		return plan(
			`{id: tenant, by: [tenant], rate: 10/s}`,
			`{id: trial, by: [tenant, op], missing: share, rate: 3/m, mode: `+mode+`}`)
	}
	m := newModel(t, limits("shadow"))
	expect(t, m, m.Check(start, named("a", 1)), allowed("tenant", 10, 9, 100))
	setLimits(t, m, limits("off"))
	expect(t, m, m.Check(start, named("a", 1)), allowed("tenant", 10, 9, 100))
	setLimits(t, m, limits("enforce"))
	expect(t, m, m.Check(start, named("a", 1)), allowed("trial", 3, 1, 40_000))
}
