package reference_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/reference"
)

func TestADeniedRequestTakesNothing(t *testing.T) {
	m := newModel(t, plan(
		`{id: tenant, by: [tenant], rate: 10/s}`,
		`{id: quota, by: [tenant], group: quota, rate: 4/m, algorithm: fixed_window}`)+`
shared:
  - {id: ip, by: [ip], rate: 20/s}
`)
	r := reference.Request{Tenant: "acme", IP: "192.0.2.1", Cost: 3}
	expect(t, m, m.Check(start, r), allowed("quota", 4, 1, 60_000))
	expect(t, m, m.Check(start, r), denied("quota", 4, 1, 60_000, 60_000))
	r.Tenant = "globex"
	r.Cost = 4
	expect(t, m, m.Check(start, r), allowed("quota", 4, 0, 60_000))
	// The address has 20 - 3 - 4 left.
	expect(t, m, m.Peek(start, reference.Request{Tenant: "-", IP: "192.0.2.1", Cost: 1}), allowed("ip", 20, 12, 400))
	r = reference.Request{Tenant: "initech", IP: "192.0.2.1", Cost: 4}
	m.Check(start, r)
	r.Tenant = "umbrella"
	m.Check(start, r)
	r.Tenant = "hooli"
	m.Check(start, r)
	// 1 is left of the address: the wait for 4 is 150 ms.
	r.Tenant = "massive"
	expect(t, m, m.Check(start, r), denied("ip", 20, 1, 150, 950))
	r.IP = ""
	expect(t, m, m.Check(start, r), allowed("quota", 4, 0, 60_000))
}

func TestTheLongestWaitBinds(t *testing.T) {
	m := newModel(t, plan(
		`{id: fast, by: [tenant], rate: 10/s}`,
		`{id: slow, by: [tenant, op], rate: 10/m}`,
		`{id: small, by: [tenant, user], rate: 5/m}`))
	r := reference.Request{Tenant: "acme", Op: "GET", Cost: 10}
	expect(t, m, m.Check(start, r), allowed("fast", 10, 0, 1000))
	r.Cost = 1
	expect(t, m, m.Check(start, r), denied("slow", 10, 0, 6_000, 60_000))
	r.Cost, r.Dims = 6, map[string]string{"user": "u1"}
	expect(t, m, m.Check(start, r), denied("small", 5, 5, -1, 0))
}

func TestTheFirstOfEqualLimitsBinds(t *testing.T) {
	file := `
default_plan: free
plans:
  free:
    - {id: b, by: [tenant], rate: 10/s}
    - {id: a, by: [tenant, op], rate: 100/s, burst: 10}
tenants:
  acme: {overrides: {a: {rate: 10/s}}}
shared:
  - {id: aa, by: [ip], rate: 10/s}
`
	m := newModel(t, file)
	r := reference.Request{Tenant: "globex", Op: "GET", IP: "192.0.2.1", Cost: 1}
	expect(t, m, m.Check(start, r), allowed("b", 10, 9, 100))
	// Nothing is left of either, and both deny for 100 ms.
	r = reference.Request{Tenant: "acme", Op: "GET", Cost: 10}
	expect(t, m, m.Check(start, r), allowed("b", 10, 0, 1000))
	r.Cost = 1
	expect(t, m, m.Check(start, r), denied("b", 10, 0, 100, 1000))
	// The shared limit has less left, so it binds although it is the last.
	r = reference.Request{Tenant: "initech", Op: "GET", IP: "192.0.2.1", Cost: 1}
	expect(t, m, m.Check(start, r), allowed("aa", 10, 8, 200))
}

func TestTheLeastLeftInProportionBinds(t *testing.T) {
	m := newModel(t, plan(
		`{id: large, by: [tenant], rate: 1000/s}`,
		`{id: small, by: [tenant, op], rate: 3/s}`))
	r := reference.Request{Tenant: "acme", Op: "GET", Cost: 1}
	expect(t, m, m.Check(start, r), allowed("small", 3, 2, 334))
	expect(t, m, m.Check(start, cost(500)), allowed("large", 1000, 499, 501))
	expect(t, m, m.Check(start, r), allowed("small", 3, 1, 667))
	expect(t, m, m.Check(start, cost(300)), allowed("large", 1000, 198, 802))
	r.Op = "PUT"
	expect(t, m, m.Check(start, r), allowed("large", 1000, 197, 803))
}

func TestAShadowChangesNoAnswer(t *testing.T) {
	limits := func(mode string) string {
		return plan(
			`{id: tenant, by: [tenant], rate: 10/s}`,
			`{id: trial, by: [tenant], when: {op: "GET*"}, rate: 3/m, mode: `+mode+`}`)
	}
	m := newModel(t, limits("shadow"))
	get := func(units int64) reference.Request {
		return reference.Request{Tenant: "acme", Op: "GET /", Cost: units}
	}
	expect(t, m, m.Check(start, get(2)), allowed("tenant", 10, 8, 200))
	expect(t, m, m.Check(start, get(2)), allowed("tenant", 10, 6, 400))     // it would have denied this
	expect(t, m, m.Check(start, get(7)), denied("tenant", 10, 6, 100, 400)) // and takes nothing of this
	// The shadow's counts are in effect once it is enforced: 1 of 3 is left.
	setLimits(t, m, limits("enforce"))
	expect(t, m, m.Check(start, get(2)), denied("trial", 3, 1, 20_000, 40_000))
	expect(t, m, m.Check(start, get(1)), allowed("trial", 3, 0, 60_000))
	setLimits(t, m, limits("off"))
	expect(t, m, m.Check(start, get(1)), allowed("tenant", 10, 5, 500))
}

// TestShadowOfEqualSpecificity checks that a shadow is tried beside a limit that is as specific, in
// any order of the file.
func TestShadowOfEqualSpecificity(t *testing.T) {
	const tenant, trial = `{id: tenant, by: [tenant], rate: 10/s}`, `{id: trial, by: [tenant], rate: 3/m, mode: `
	for _, order := range [][]string{{tenant, trial + "shadow}"}, {trial + "shadow}", tenant}} {
		m := newModel(t, plan(order...))
		expect(t, m, m.Check(start, cost(2)), allowed("tenant", 10, 8, 200))
		setLimits(t, m, plan(trial+"enforce}"))
		expect(t, m, m.Check(start, cost(1)), allowed("trial", 3, 0, 60_000))
	}
}

func TestOnlyShadows(t *testing.T) {
	m := newModel(t, plan(
		`{id: trial, by: [tenant], rate: 3/m, mode: shadow}`,
		`{id: ban, action: deny, mode: shadow}`,
		`{id: user, by: [tenant, user], rate: 1/s, missing: deny, mode: shadow}`))
	expect(t, m, m.Check(start, cost(5)), unlimited)
}
