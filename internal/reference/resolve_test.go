package reference_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/reference"
)

// binds checks which limit binds the first decision on a request.
func binds(t *testing.T, file string, r reference.Request, want string) {
	t.Helper()
	m := newModel(t, file)
	r.Cost = 1
	if d := m.Check(start, r); d.LimitID != want {
		t.Errorf("%q binds, want %q\n%s", d.LimitID, want, m.Trace())
	}
}

func TestTheMostSpecificLimitApplies(t *testing.T) {
	for name, test := range map[string]struct {
		limits []string // of one group, each with less than the one before
		want   string
	}{
		"more conditions": {[]string{
			`{id: a, by: [tenant], rate: 3/s, when: {op: "PUT /files", user: "u*"}}`,
			`{id: b, by: [tenant], rate: 2/s, when: {op: "PUT /files"}}`,
			`{id: c, by: [tenant], rate: 1/s}`,
		}, "a"},
		"exact": {[]string{
			`{id: a, by: [tenant], rate: 3/s, when: {op: "PUT /files"}}`,
			`{id: b, by: [tenant], rate: 2/s, when: {op: "PUT /file*"}}`,
		}, "a"},
		"longer": {[]string{
			`{id: a, by: [tenant], rate: 3/s, when: {op: "PUT /f*"}}`,
			`{id: b, by: [tenant], rate: 2/s, when: {op: "PUT*"}}`,
			`{id: c, by: [tenant], rate: 1/s, when: {op: "GET /files*"}}`,
		}, "a"},
		"address over block": {[]string{
			`{id: a, by: [tenant], rate: 3/s, when: {ip: 198.51.100.7}}`,
			`{id: b, by: [tenant], rate: 2/s, when: {ip: 198.51.100.0/24}}`,
		}, "a"},
		"smaller block": {[]string{
			`{id: a, by: [tenant], rate: 3/s, when: {ip: 198.51.100.0/24}}`,
			`{id: b, by: [tenant], rate: 2/s, when: {ip: 198.51.0.0/16}}`,
		}, "a"},
		"another group": {[]string{
			`{id: a, by: [tenant], rate: 3/s, when: {op: "PUT /files"}}`,
			`{id: b, by: [tenant], rate: 2/s, group: quota}`,
		}, "b"},
		"another level": {[]string{
			`{id: a, by: [tenant], rate: 3/s, when: {op: "PUT /files"}}`,
			`{id: b, by: [tenant, op], rate: 2/s}`,
		}, "b"},
		"off": {[]string{
			`{id: a, by: [tenant], rate: 3/s}`,
			`{id: b, by: [tenant], rate: 2/s, mode: off, when: {op: "PUT /files"}}`,
		}, "a"},
		"concurrency": {[]string{
			`{id: a, by: [tenant], rate: 3/s}`,
			`{id: b, by: [tenant], algorithm: concurrency, slots: 1}`,
		}, "a"},
		"allow": {[]string{
			`{id: a, by: [tenant], rate: 3/s}`,
			`{id: b, by: [tenant], when: {user: u1}, action: allow}`,
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			binds(t, plan(test.limits...), reference.Request{
				Tenant: "acme", Op: "PUT /files", IP: "198.51.100.7", Dims: map[string]string{"user": "u1"},
			}, test.want)
		})
	}
}

func TestAnOverrideBeatsItsPlan(t *testing.T) {
	m := newModel(t, plan(
		`{id: tenant, by: [tenant], rate: 100/s, burst: 200}`,
		`{id: upload, by: [tenant], rate: 10/s, when: {op: "PUT*"}}`)+`
tenants:
  acme:
    overrides:
      tenant: {rate: 500/s}
  globex: {plan: free}
`)
	put := reference.Request{Tenant: "acme", Op: "PUT /", Cost: 1}
	expect(t, m, m.Check(start, put), allowed("tenant", 200, 199, 2))
	for _, tenant := range []string{"globex", "initech"} {
		put.Tenant = tenant
		expect(t, m, m.Check(start, put), allowed("upload", 10, 9, 100))
	}
}

func TestAnOverrideDropsWhatCannotApply(t *testing.T) {
	m := newModel(t, plan(
		`{id: tenant, by: [tenant], rate: 100/s, burst: 200, when: {op: "PUT*"}}`,
		`{id: quota, by: [tenant], group: quota, rate: 10/day, algorithm: fixed_window, timezone: Europe/Berlin}`)+`
tenants:
  acme:
    overrides:
      tenant: {algorithm: fixed_window, when: {op: "GET*"}}
      quota: {rate: 1000/m}
`)
	expect(t, m, m.Check(start, reference.Request{Tenant: "acme", Op: "GET /", Cost: 1}), allowed("tenant", 100, 99, 1000))
	expect(t, m, m.Check(start, reference.Request{Tenant: "acme", Op: "PUT /", Cost: 1}), allowed("quota", 1000, 998, 60_000))
}

func TestALimitReplacesAnother(t *testing.T) {
	file := plan(
		`{id: tenant, by: [tenant], rate: 2/s}`,
		`{id: upload, by: [tenant, op], when: {op: "PUT /files*"}, rate: 5/s, replaces: [tenant]}`)
	binds(t, file, reference.Request{Tenant: "acme", Op: "PUT /files/1"}, "upload")
	binds(t, file, reference.Request{Tenant: "acme", Op: "GET /files/1"}, "tenant")
}

func TestAMissingDimension(t *testing.T) {
	file := func(missing string) string {
		return plan(
			`{id: tenant, by: [tenant], rate: 100/s}`,
			`{id: region, by: [tenant, region], rate: 5/s, missing: `+missing+`}`) +
			"dimensions: {region: {values: [eu, us]}}\n"
	}
	eu := reference.Request{Tenant: "acme", Dims: map[string]string{"region": "eu"}, Cost: 1}
	mars := reference.Request{Tenant: "acme", Dims: map[string]string{"region": "mars"}, Cost: 1}

	m := newModel(t, file("pass"))
	expect(t, m, m.Check(start, eu), allowed("region", 5, 4, 200))
	expect(t, m, m.Check(start, mars), allowed("tenant", 100, 98, 20))

	m = newModel(t, file("deny"))
	refused := reference.Decision{Limit: 5, RetryAfter: -1, LimitID: "region", Policy: true}
	expect(t, m, m.Check(start, eu), allowed("region", 5, 4, 200))
	expect(t, m, m.Check(start, mars), refused)
	expect(t, m, m.Check(start, cost(1)), refused)

	m = newModel(t, file("share"))
	expect(t, m, m.Check(start, eu), allowed("region", 5, 4, 200))
	expect(t, m, m.Check(start, mars), allowed("region", 5, 4, 200))
	expect(t, m, m.Check(start, cost(1)), allowed("region", 5, 3, 400))
}

func TestAChainTakesTheFirstThatIsPresent(t *testing.T) {
	m := newModel(t, plan(`{id: caller, by: [tenant, "api_key|user|ip"], rate: 5/s}`))
	ask := func(r reference.Request, want reference.Decision) {
		t.Helper()
		r.Tenant, r.Cost = "acme", 1
		expect(t, m, m.Check(start, r), want)
	}
	first, then := allowed("caller", 5, 4, 200), allowed("caller", 5, 3, 400)
	ask(reference.Request{Dims: map[string]string{"api_key": "k", "user": "u"}, IP: "192.0.2.1"}, first)
	ask(reference.Request{Dims: map[string]string{"api_key": "k"}}, then)
	ask(reference.Request{Dims: map[string]string{"user": "192.0.2.1"}}, first)
	ask(reference.Request{IP: "192.0.2.1"}, first)
	ask(reference.Request{IP: "::ffff:192.0.2.1"}, then)
	ask(reference.Request{}, unlimited)
}

func TestAddressesOfOneNetwork(t *testing.T) {
	m := newModel(t, `
shared:
  - {id: ip, by: [ip], rate: 5/s}
  - {id: office, by: [ip], when: {ip: 198.51.100.0/24}, action: allow}
  - {id: blocked, action: deny, when: {ip: "2001:db8:bad::/48"}}
`)
	ask := func(ip string, want reference.Decision) {
		t.Helper()
		expect(t, m, m.Check(start, reference.Request{Tenant: "acme", IP: ip, Cost: 1}), want)
	}
	ask("2001:db8::1", allowed("ip", 5, 4, 200))
	ask("2001:db8::ffff:0:0:1", allowed("ip", 5, 3, 400))
	ask("2001:db8:0:1::1", allowed("ip", 5, 4, 200))
	ask("198.51.100.9", unlimited)
	ask("::ffff:198.51.100.9", unlimited)
	ask("2001:db8:bad::7", reference.Decision{RetryAfter: -1, LimitID: "blocked", Policy: true})
	ask("", unlimited)
}

func TestWithoutALimit(t *testing.T) {
	m := newModel(t, `
plans:
  free:
    - {id: tenant, by: [tenant], rate: 1/s}
    - {id: closed, action: deny, when: {op: secret}}
tenants:
  acme: {plan: free}
shared:
  - {id: ip, by: [ip], rate: 1/s}
`)
	expect(t, m, m.Check(start, reference.Request{Tenant: "initech", Op: "secret", Cost: 5}), unlimited)
	expect(t, m, m.Check(start, reference.Request{Tenant: "acme", Op: "secret", Cost: 1}),
		reference.Decision{RetryAfter: -1, LimitID: "closed", Policy: true})
	expect(t, m, m.Check(start, cost(1)), allowed("tenant", 1, 0, 1000))
}
