package reference_test

import "testing"

func TestATokenBucketStartsFullAndRefills(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 5/1s, burst: 5}`))
	expect(t, m, m.Check(start, cost(3)), allowed("tenant", 5, 2, 600))
	expect(t, m, m.Check(start, cost(3)), denied("tenant", 5, 2, 200, 600))
	expect(t, m, m.Check(start+199*ms, cost(3)), denied("tenant", 5, 2, 1, 401))
	expect(t, m, m.Check(start+200*ms, cost(3)), allowed("tenant", 5, 0, 1000))
	expect(t, m, m.Check(start+200*ms, cost(6)), denied("tenant", 5, 0, -1, 1000))
	// It is full after a second, and holds no more later.
	expect(t, m, m.Check(start+3600*sec, cost(1)), allowed("tenant", 5, 4, 200))
}

func TestATokenBucketIsExact(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 3/s}`))
	// A unit takes 333 1/3 ms.
	expect(t, m, m.Check(start, cost(3)), allowed("tenant", 3, 0, 1000))
	expect(t, m, m.Check(start, cost(1)), denied("tenant", 3, 0, 334, 1000))
	expect(t, m, m.Check(start+333_333, cost(1)), denied("tenant", 3, 0, 1, 667))
	expect(t, m, m.Check(start+333_334, cost(1)), allowed("tenant", 3, 0, 1000))
}

func TestABurstIsNotTheRate(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 1000/m, burst: 2000}`))
	expect(t, m, m.Check(start, cost(2000)), allowed("tenant", 2000, 0, 120_000))
	// After 61 s there are 1,016 2/3 units.
	expect(t, m, m.Peek(start+61*sec, cost(1016)), allowed("tenant", 2000, 0, 119_960))
	expect(t, m, m.Peek(start+61*sec, cost(1017)), denied("tenant", 2000, 1016, 20, 59_000))
}

func TestPeekChangesNothing(t *testing.T) {
	m := newModel(t, plan(`{id: tenant, by: [tenant], rate: 5/s}`))
	for range 3 {
		expect(t, m, m.Peek(start, cost(4)), allowed("tenant", 5, 1, 800))
	}
	expect(t, m, m.Check(start, cost(5)), allowed("tenant", 5, 0, 1000))
	expect(t, m, m.Peek(start, cost(1)), denied("tenant", 5, 0, 200, 1000))
}

func TestALargestCost(t *testing.T) {
	m := newModel(t, plan(
		`{id: units, by: [tenant], rate: 10/s, max_cost: 3}`,
		`{id: requests, by: [tenant], group: requests, rate: 2/s, cost: 1}`))
	expect(t, m, m.Check(start, cost(3)), allowed("requests", 2, 1, 500))
	expect(t, m, m.Check(start, cost(4)), denied("units", 10, 7, -1, 300))
	expect(t, m, m.Check(start, cost(3)), allowed("requests", 2, 0, 1000))
	expect(t, m, m.Check(start, cost(3)), denied("requests", 2, 0, 500, 1000))
}
