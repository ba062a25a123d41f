package proxy

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/syncbuffer"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestSampledRequests: mistakes of clients have a line each, once an hour, and requests in order have none.
func TestSampledRequests(t *testing.T) {
	const swapped = `msg="the tenant is a route, and the op is no route: the order is tenant op ip, and these requests share the limits of a tenant of that name"`
	const unknown = `dimension=usr used=user`
	const absent = `msg="requests have a word for a missing value: their callers share the buckets of that word; leave out a dimension without a value, and write - for no op" dimension=`
	const spelled = `msg="requests have an op that is another spelling of one in the limits, which take it for another: both have to spell it alike" reason=`
	set := setOf(t, `{id: a, by: [tenant, user|key], rate: 1000/s}, {id: b, by: [tenant, ip], when: {region: "eu*"}, rate: 1000/h, mode: shadow}, {id: c, by: [tenant], group: c, when: {op: "POST /b*"}, rate: 1000/h}`)
	dims := func(names ...string) (all []limit.Dim) {
		for _, name := range names {
			all = append(all, limit.Dim{Name: name, Value: "x"})
		}
		return all
	}
	for name, row := range map[string]struct {
		req  limit.Request
		want string
	}{
		"swapped":              {limit.Request{Tenant: "GET /a/203.0.113.7?token=x", Op: "203.0.113.7"}, swapped + "\n"},
		"a listed op":          {limit.Request{Tenant: "GET /a/203.0.113.7?token=x", Op: "null"}, swapped + " op=null\n"},
		"an address as op":     {limit.Request{Tenant: "acme", Op: "203.0.113.7"}, `msg="the op is an address, and there is no ip: the order is tenant op ip, with - for no op"`},
		"with an ip":           {limit.Request{Tenant: "acme", Op: "203.0.113.7", Addr: netip.MustParseAddr("192.0.2.1")}, ""},
		"in order":             {limit.Request{Tenant: "acme", Op: "GET /a"}, ""},
		"small letters":        {limit.Request{Tenant: "acme", Op: "post /b/7"}, spelled + `"its method is in small letters" condition="POST /b*"`},
		"a query":              {limit.Request{Tenant: "acme", Op: "/b?token=x"}, spelled + `"it has no method" condition="POST /b*"`},
		"another method":       {limit.Request{Tenant: "acme", Op: "GET /b"}, ""},
		"no slots":             {limit.Request{Tenant: "acme", Op: "GET /b", ID: "1", Hold: limit.HoldSlot, HoldFor: time.Second}, `msg="slots are acquired for a tenant without a limit of algorithm concurrency: nothing bounds how many it holds" tenant=acme plan=p`},
		"a reservation":        {limit.Request{Tenant: "acme", Op: "GET /b", ID: "1", Hold: limit.HoldReservation, HoldFor: time.Second}, ""},
		"no tenant":            {limit.Request{Tenant: "undefined", Op: "GET /a"}, absent + "tenant value=undefined"},
		"no op":                {limit.Request{Tenant: "acme", Op: "[object Object]"}, absent + `op value="[object Object]"`},
		"no user":              {limit.Request{Tenant: "acme", Op: "GET /a", Dims: []limit.Dim{{Name: "user", Value: "None"}}}, absent + "user value=None"},
		"in capitals":          {limit.Request{Tenant: "NULL", Op: "GET /a"}, "it has not the limits of that one\" tenant=NULL listed=null"},
		"with blanks":          {limit.Request{Tenant: "null ", Op: "GET /a"}, "it has not the limits of that one\" tenant=\"null \" listed=null"},
		"a listed tenant":      {limit.Request{Tenant: "null", Op: "GET /a"}, ""},
		"nearly a name":        {limit.Request{Tenant: "acme", Op: "GET /a", Dims: dims("usr")}, unknown},
		"beside the name":      {limit.Request{Tenant: "acme", Op: "GET /a", Dims: dims("user", "usr")}, ""},
		"names of conditions":  {limit.Request{Tenant: "acme", Op: "GET /a", Dims: dims("region", "key")}, ""},
		"another name":         {limit.Request{Tenant: "acme", Op: "GET /a", Dims: dims("country")}, ""},
		"near a reserved name": {limit.Request{Tenant: "acme", Op: "GET /a", Dims: dims("zip")}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := new(syncbuffer.Buffer)
			look := newSampledRequests(fixedLimits{set: set}.Set, false, slog.New(slog.NewTextHandler(log, nil))).look
			l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second, Sample: look}, set)
			var batch limiter.Batch
			for begin := time.Now(); time.Since(begin) < 90*time.Minute; time.Sleep(time.Second) {
				batch.Reset()
				row.req.Cost = 1
				batch.Requests = append(batch.Requests, row.req)
				l.Decide(&batch)
			}
			lines := 0
			if row.want != "" {
				lines = 2
			}
			if got := log.String(); strings.Count(got, row.want) < lines || strings.Count(got, "\n") != lines {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

// TestSpelledRoutes: where limits count by op, or have a condition on a template, the line about another spelling has nothing of the op.
func TestSpelledRoutes(t *testing.T) {
	log := new(syncbuffer.Buffer)
	set := setOf(t, `{id: a, by: [tenant, op], rate: 1000/s}, {id: b, by: [tenant], group: b, when: {op: "GET /users/{id}"}, rate: 9/s}`)
	s := newSampledRequests(fixedLimits{set: set}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
	for _, op := range []string{"GET /items/4711?token=abc", "GET /reset/secret?x", "GET /jane@example.com?x", "GET /users/4711", "GET /users/4712", "GET /users/{id}", "GET /items/{id}"} {
		s.look(&limit.Request{Tenant: "acme", Op: op, Cost: 1})
	}
	const line = `msg="requests have an op that is another spelling of one in the limits, which take it for another: both have to spell it alike" reason=`
	got := log.String()
	for _, want := range []string{line + `"it has a query" plan=p advice="limitgate top shows the ops of requests"`, line + `"it has a value in place of {id}: send the template of the route" condition="GET /users/{id}"`} {
		if strings.Count(got, want+"\n") != 1 {
			t.Errorf("without one line %s:\n%s", want, got)
		}
	}
	if strings.Count(got, "\n") != 2 || strings.Contains(got, "/47") || strings.Contains(got, "secret") || strings.Contains(got, "jane") {
		t.Error(got)
	}
}

// TestLackingDimension: a plan of whose requests none meets a limit for want of a dimension has one line.
func TestLackingDimension(t *testing.T) {
	const line = `msg="no request of a plan meets a limit: all its limits need a dimension that requests lack" plan=p dimension=region limit=eu` + "\n"
	const slots = `msg="no request of a plan meets a limit: its limits count slots, which only RL.ACQUIRE takes" plan=p limit=k` + "\n"
	for name, row := range map[string]struct {
		limits string
		with   int // the request that has the dimension, or 0
		want   string
	}{
		"all need one":     {`{id: eu, by: [tenant], when: {region: eu}, rate: 9/s}, {id: w, by: [tenant, "user|key"], when: {op: "POST *"}, rate: 9/s}`, 0, line},
		"the nearest":      {`{id: php, by: [tenant], when: {region: eu, path: "/*", location: php}, rate: 9/s}, {id: eu, by: [tenant], group: g, when: {region: eu}, rate: 9/s}`, 0, line},
		"one is in shadow": {`{id: eu, by: [tenant], when: {region: eu}, rate: 9/s}, {id: all, by: [tenant], group: g, rate: 9/s, mode: shadow}`, 0, ""},
		"one is off":       {`{id: eu, by: [tenant], when: {region: eu}, rate: 9/s}, {id: all, by: [tenant], group: g, rate: 9/s, mode: "off"}`, 0, line},
		"some have it":     {`{id: eu, by: [tenant], when: {region: eu}, rate: 9/s}`, 7, ""},
		"another needs ip": {`{id: eu, by: [tenant], when: {region: eu}, rate: 9/s}, {id: ip, by: [tenant, ip], rate: 9/s}`, 0, ""},
		"another op":       {`{id: eu, by: [tenant], when: {region: eu, op: "POST *"}, rate: 9/s}`, 0, ""},
		"it is demanded":   {`{id: eu, by: [tenant, region], missing: deny, rate: 9/s}`, 0, ""},
		"it counts slots":  {`{id: k, by: [tenant, user], algorithm: concurrency, slots: 2}, {id: eu, by: [tenant], when: {region: eu}, rate: 9/s}`, 0, line},
		"slots first":      {`{id: k, by: [tenant], algorithm: concurrency, slots: 2}, {id: eu, by: [tenant], when: {region: eu}, rate: 9/s}`, 0, line},
		"all count slots":  {`{id: k, by: [tenant], algorithm: concurrency, slots: 2}`, 0, slots},
		"it allows":        {`{id: eu, by: [tenant], when: {region: eu}, action: allow}`, 0, ""},
		"too late":         {`{id: eu, by: [tenant], when: {region: eu}, rate: 9/s}`, lackingRequests + 1, line},
	} {
		log := new(syncbuffer.Buffer)
		s := newSampledRequests(fixedLimits{set: setOf(t, row.limits)}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
		for i := range 3 * lackingRequests {
			req := &limit.Request{Tenant: "acme", Op: "GET /a", Cost: 1}
			if i+1 == row.with {
				req.Dims = []limit.Dim{{Name: "region", Value: "eu"}}
			}
			s.look(req)
		}
		if got := log.String(); !strings.HasSuffix(got, row.want) || strings.Count(got, "\n") != strings.Count(row.want, "\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestUnsentDimension: a dimension that an enforced limit needs, and that none of many requests has, has one line.
func TestUnsentDimension(t *testing.T) {
	const limits = `{id: t, by: [tenant], rate: 9/s}, {id: login, by: [tenant], group: l, when: {operation: "POST /login"}, rate: 5/m}, {id: user, by: [tenant, user], rate: 9/s}, {id: any, by: [tenant, "ip|key"], rate: 9/s}, {id: watched, by: [tenant, device], rate: 9/s, mode: shadow}`
	const unsent = `msg="a limit needs a dimension that none of the requests which it is for has: services send DIM with its name and value" dimension=operation limit=login plan=p requests=1000` + "\n"
	for name, row := range map[string]struct {
		requests, with int // the request that has all dimensions, or 0
		want           string
	}{
		"too few":     {unsentRequests - 1, 0, ""},
		"none has it": {3 * unsentRequests, 0, unsent},
		"one has it":  {3 * unsentRequests, 500, ""},
	} {
		log := new(syncbuffer.Buffer)
		s := newSampledRequests(fixedLimits{set: setOf(t, limits)}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
		for i := range row.requests {
			req := &limit.Request{Tenant: "acme", Op: "GET /a", Cost: 1, Dims: []limit.Dim{{Name: "user", Value: "u"}}}
			if i+1 == row.with {
				req.Dims = append(req.Dims, limit.Dim{Name: "operation", Value: "x"})
			}
			s.look(req)
		}
		if got := log.String(); !strings.HasSuffix(got, row.want) || strings.Count(got, "\n") != strings.Count(row.want, "\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestUnsentDimensionOfOthers: requests of other plans and ops, and those that carry limits of their own, say nothing about the
// dimension that a limit needs.
func TestUnsentDimensionOfOthers(t *testing.T) {
	set, _, err := config.ParseLimits("f", []byte(`
version: 1
default_plan: free
plans:
  free: [{id: rps, by: [tenant], rate: 100000/s}, {id: login, by: [tenant, user], when: {op: "POST /login"}, rate: 5/m}]
  own: [{id: name, by: [tenant, name], rate: 20/s}, {id: any, by: [tenant], rate: 9/s}]
  pro: [{id: user, by: [tenant, user], rate: 20/s}, {id: all, by: [tenant], rate: 9/s}, {id: eu, by: [tenant], group: eu, when: {region: eu}, rate: 9/s}]
tenants: {initech: {plan: pro}, other: {plan: own}, acme: {plan: own, overrides: {name: {mode: "off"}}}}
shared: [{id: device, by: [device], rate: 9/s}, {id: office, when: {ip: 198.51.100.0/24}, action: allow}]
`), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log := new(syncbuffer.Buffer)
	s := newSampledRequests(fixedLimits{set: set}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
	look := func(requests int, req limit.Request, want ...string) {
		t.Helper()
		before := len(log.String())
		for range requests {
			s.look(&req)
		}
		got := log.String()[before:]
		if strings.Count(got, "\n") != len(want) {
			t.Errorf("%d of %+v: %q, want %q", requests, req, got, want)
		}
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%d of %+v: %q, want %q", requests, req, got, want)
			}
		}
	}
	others, login := limit.Request{Tenant: "x", Op: "GET /a", Cost: 1}, limit.Request{Tenant: "x", Op: "POST /login", Cost: 1}
	pro := limit.Request{Tenant: "initech", Op: "GET /a", Cost: 1}
	of := pro
	of.Dims = []limit.Dim{{Name: "region", Value: "us"}}
	look(2*unsentRequests, limit.Request{Tenant: "x", Op: "POST /login", Cost: 1, Bypass: true})
	look(2*unsentRequests, limit.Request{Tenant: "x", Op: "POST /login", Cost: 1, Addr: netip.MustParseAddr("198.51.100.7")})
	look(2*unsentRequests, limit.Request{Tenant: "acme", Op: "GET /a", Cost: 1})
	look(2*unsentRequests, limit.Request{Tenant: "x", Cost: 1, Inline: new(limit.Limit)})
	look(1, of)
	look(unsentRequests-1, others)
	look(1, others, "dimension=device limit=device")
	look(2*unsentRequests, others)
	look(unsentRequests-1, login)
	look(1, login, "dimension=user limit=login plan=free")
	look(unsentRequests, pro)
	look(unsentRequests, limit.Request{Tenant: "other", Op: "GET /a", Cost: 1}, "dimension=name limit=name plan=own")
}

// TestUnslotted: a limit of slots that very many requests are for, none of which takes one, has one line.
func TestUnslotted(t *testing.T) {
	const limits = `{id: rps, by: [tenant], rate: 9/s}, {id: exports, by: [tenant], when: {op: "POST /exports"}, algorithm: concurrency, slots: 2}, {id: watched, by: [tenant], algorithm: concurrency, slots: 2, mode: shadow}`
	const line = `msg="a limit counts slots, and none of the requests which it is for takes one: only RL.ACQUIRE does, and RL.CHECK passes the limit over" limit=exports plan=p requests=1000` + "\n"
	for name, row := range map[string]struct {
		op            string
		requests      int
		acquired      int // the request that takes a slot, or 0
		acquiredOther bool
		want          string
	}{
		"too few":         {"POST /exports", unsentRequests - 1, 0, false, ""},
		"none takes one":  {"POST /exports", 3 * unsentRequests, 0, false, line},
		"one takes one":   {"POST /exports", 3 * unsentRequests, 500, false, ""},
		"another one":     {"POST /exports", 3 * unsentRequests, 500, true, ""},
		"it is not for":   {"GET /a", 3 * unsentRequests, 0, false, ""},
		"one behind 1000": {"POST /exports", 3 * unsentRequests, 2 * unsentRequests, false, line},
	} {
		log := new(syncbuffer.Buffer)
		s := newSampledRequests(fixedLimits{set: setOf(t, limits)}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
		for i := range row.requests {
			req := &limit.Request{Tenant: "acme", Op: row.op, Cost: 1}
			if i+1 == row.acquired {
				req.Hold = limit.HoldSlot
				if row.acquiredOther {
					req.Op = "GET /a"
				}
			}
			s.look(req)
		}
		if got := log.String(); !strings.HasSuffix(got, row.want) || strings.Count(got, "\n") != strings.Count(row.want, "\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSlotBeforeReload: a slot that was taken before other limits came into use is one of the plan.
func TestSlotBeforeReload(t *testing.T) {
	const limits = `{id: exports, by: [tenant], algorithm: concurrency, slots: 2}, {id: rps, by: [tenant], rate: %s}`
	log := new(syncbuffer.Buffer)
	set := setOf(t, fmt.Sprintf(limits, "9/s"))
	s := newSampledRequests(func() *limit.Set { return set }, false, slog.New(slog.NewTextHandler(log, nil)))
	s.look(&limit.Request{Tenant: "acme", Cost: 1, Hold: limit.HoldSlot})
	set = setOf(t, fmt.Sprintf(limits, "10/s"))
	for range 2 * unsentRequests {
		s.look(&limit.Request{Tenant: "acme", Cost: 1})
	}
	if log.String() != "" {
		t.Errorf("logged %s", log)
	}
}

// TestDimensionBeforeReload: a dimension that was sent before other limits came into use, and no more since, has its line.
func TestDimensionBeforeReload(t *testing.T) {
	const limits = `{id: rps, by: [tenant], rate: %s}, {id: per_user, by: [tenant, user], rate: 5/s}`
	log := new(syncbuffer.Buffer)
	set := setOf(t, fmt.Sprintf(limits, "9/s"))
	s := newSampledRequests(func() *limit.Set { return set }, false, slog.New(slog.NewTextHandler(log, nil)))
	s.look(&limit.Request{Tenant: "acme", Cost: 1, Dims: []limit.Dim{{Name: "user", Value: "u"}}})
	set = setOf(t, fmt.Sprintf(limits, "10/s"))
	for range 2 * unsentRequests {
		s.look(&limit.Request{Tenant: "acme", Cost: 1})
	}
	if got := log.String(); strings.Count(got, "dimension=user limit=per_user") != 1 {
		t.Errorf("logged %s", got)
	}
}

// TestUnsentBesideSlots: very many limits of slots do not hide that a dimension is missing.
func TestUnsentBesideSlots(t *testing.T) {
	var limits strings.Builder
	for i := range unsentLimits + 4 {
		fmt.Fprintf(&limits, "{id: s%d, by: [tenant], group: g%d, when: {op: x}, algorithm: concurrency, slots: 2, mode: enforce}, ", i, i)
	}
	limits.WriteString("{id: all, by: [tenant], rate: 9/s}, {id: per_user, by: [tenant, user], rate: 9/s}")
	set, _, err := config.ParseLimits("f", []byte("version: 1\nmax_levels: 64\ndefault_plan: p\nplans: {p: ["+limits.String()+"]}\n"), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	log := new(syncbuffer.Buffer)
	s := newSampledRequests(fixedLimits{set: set}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
	for range unsentRequests {
		s.look(&limit.Request{Tenant: "acme", Op: "GET /a", Cost: 1})
	}
	if got := log.String(); !strings.Contains(got, "dimension=user limit=per_user") {
		t.Error(got)
	}
}

// TestSampledLines: each misspelled name has a line, up to a number of them.
func TestSampledLines(t *testing.T) {
	log := new(syncbuffer.Buffer)
	set := setOf(t, `{id: a, by: [tenant, user], rate: 1000/s}`)
	s := newSampledRequests(fixedLimits{set: set}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
	for range 2 {
		for _, name := range []string{"usr", "User", "users", "uzer", "user1", "user2", "user3", "user4", "user5"} {
			s.look(&limit.Request{Tenant: "t", Dims: []limit.Dim{{Name: name, Value: "x"}}})
		}
	}
	if n := strings.Count(log.String(), "\n"); n != sampledLines || strings.Count(log.String(), "dimension=usr ") != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
}

// TestSampledNames: names that clients make up do not fill memory.
func TestSampledNames(t *testing.T) {
	set := setOf(t, `{id: a, by: [tenant, user, op], rate: 1000/s}`)
	s := newSampledRequests(fixedLimits{set: set}.Set, false, slog.New(slog.DiscardHandler))
	for i := range 10 * sampledNames {
		s.look(&limit.Request{Tenant: "t", Op: fmt.Sprint("get /", i), Dims: []limit.Dim{{Name: fmt.Sprint("user-", i), Value: "x"}}})
	}
	if len(s.dims) != sampledNames || len(s.ops) != sampledOps {
		t.Errorf("%d names and %d ops", len(s.dims), len(s.ops))
	}
}

// TestSampledHours: the mistakes of many hours do not fill memory.
func TestSampledHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSampledRequests(nil, false, slog.New(slog.DiscardHandler))
		lines := 0
		for i := range 10 * sampledNames {
			if s.mayLog(&s.unknown, fmt.Sprint(i)) {
				lines++
			}
			if i%sampledLines == sampledLines-1 {
				time.Sleep(sampledQuiet + 1)
			}
			if len(s.lines) > sampledNames {
				t.Fatalf("%d mistakes are remembered", len(s.lines))
			}
		}
		if lines != 10*sampledNames {
			t.Errorf("%d lines", lines)
		}
	})
}

// TestSampledDims: a request with unknown names, beside limits that use many, costs a bounded number of comparisons.
func TestSampledDims(t *testing.T) {
	var file strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&file, "{id: l%d, by: [tenant, dimension_%d], mode: off, rate: 1/s},", i, i%200)
	}
	set := setOf(t, strings.TrimSuffix(file.String(), ","))
	if n := len(set.Dims()); n != 200 {
		t.Fatalf("limits use %d dimensions", n)
	}
	if got := nearUsed(set, "dimension_1x"); !strings.HasPrefix(got, "dimension_1") {
		t.Errorf("near is %q", got)
	}
	if got := nearUsed(set, "dimension_1"+strings.Repeat("0", sampledNameBytes)); got != "" {
		t.Errorf("near to a long name is %q", got)
	}
}

// TestSampledSpelling: a line about the spelling of an op has no part of the op, is there once for several ops and for
// the sets of an hour.
func TestSampledSpelling(t *testing.T) {
	log := new(syncbuffer.Buffer)
	file := `{id: a, by: [tenant], when: {op: "GET /files/*"}, rate: 1/s}`
	set := setOf(t, file)
	s := newSampledRequests(func() *limit.Set { return set }, false, slog.New(slog.NewTextHandler(log, nil)))
	for range 3 {
		for _, op := range []string{"get /files/1", "get /files/jane@example.com?token=hunter2", "get /files/secret", "/pkg.Service/Do", "GET /files/1"} {
			s.look(&limit.Request{Tenant: "t", Op: op})
		}
		set = setOf(t, file)
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || strings.Contains(got, "jane") || strings.Contains(got, "hunter2") || strings.Contains(got, "secret") {
		t.Errorf("logged\n%s", got)
	}
	before := log.String()
	set = setOf(t, `{id: a, by: [tenant], rate: 1/s}`)
	if s.look(&limit.Request{Tenant: "t", Op: "get  /files/1"}); log.String() != before {
		t.Errorf("without such a condition:\n%s", log)
	}
}

// TestSampledUndeclared: a value that the file does not declare has a line without the value.
func TestSampledUndeclared(t *testing.T) {
	log := new(syncbuffer.Buffer)
	set, _, err := config.ParseLimits("f", []byte("version: 1\ndefault_plan: p\ndimensions: {region: {values: [eu, us]}, user: {}, tier: {values: [a]}, op: {values: [GET /x]}}\nplans: {p: [{id: a, by: [tenant, region, op, tier], rate: 1/s}]}\n"), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSampledRequests(fixedLimits{set: set}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
	for range 2 {
		for _, d := range []limit.Dim{{Name: "region", Value: "eu"}, {Name: "user", Value: "u"}, {Name: "region", Value: "EU"}} {
			s.look(&limit.Request{Tenant: "t", Op: "GET /x", Dims: []limit.Dim{d}})
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "do not declare") || !strings.HasSuffix(got, " dimension=region declared=eu,us\n") {
		t.Errorf("logged %s", got)
	}
	for range 2 {
		s.look(&limit.Request{Tenant: "t", Op: "GET /y", Dims: []limit.Dim{{Name: "region", Value: "EU"}, {Name: "tier", Value: "b"}}})
	}
	if got := log.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, " dimension=op declared=\"GET /x\"\n") || !strings.Contains(got, " dimension=tier declared=a\n") {
		t.Errorf("logged of several %s", got)
	}
}

// BenchmarkSampled measures a look at a request without a mistake.
func BenchmarkSampled(b *testing.B) {
	set := setOf(b, `{id: a, by: [tenant, op], rate: 1/s}, {id: b, by: [tenant], when: {op: "GET /files/*"}, rate: 1/s}`)
	s := newSampledRequests(fixedLimits{set: set}.Set, false, slog.New(slog.DiscardHandler))
	req := &limit.Request{Tenant: "t", Op: "GET /files/{id}", Dims: []limit.Dim{{Name: "user", Value: "x"}, {Name: "region", Value: "y"}}}
	b.ReportAllocs()
	for b.Loop() {
		s.look(req)
	}
}

// BenchmarkNearUsed measures the comparison of the longest name with as many used ones as are compared.
func BenchmarkNearUsed(b *testing.B) {
	var file strings.Builder
	for i := range sampledUsed {
		fmt.Fprintf(&file, "{id: l%d, by: [tenant, %s_%d], mode: off, rate: 1/s},", i, strings.Repeat("d", sampledNameBytes), i)
	}
	set := setOf(b, strings.TrimSuffix(file.String(), ","))
	name := strings.Repeat("x", sampledNameBytes)
	b.ReportAllocs()
	for b.Loop() {
		nearUsed(set, name)
	}
}

// TestManyOps: very many ops have a line where limits count by op, and none where these have conditions on it alone.
func TestManyOps(t *testing.T) {
	for limits, want := range map[string]bool{
		`{id: a, by: [tenant, op], rate: 1000/s}`:                         true,
		`{id: a, by: [tenant], when: {op: "POST /b*"}, rate: 1000/s}`:     false,
		`{id: a, by: [tenant, op], when: {op: "POST /b*"}, rate: 1000/s}`: true,
		`{id: a, by: [tenant], rate: 1000/s}`:                             false,
	} {
		log := new(syncbuffer.Buffer)
		set := setOf(t, limits)
		s := newSampledRequests(func() *limit.Set { return set }, false, slog.New(slog.NewTextHandler(log, nil)))
		for i := range sampledOps {
			s.look(&limit.Request{Tenant: "acme", Op: fmt.Sprintf("POST /b/%d", i)})
		}
		if got := log.String(); got != "" {
			t.Errorf("%s: before the last one: %s", limits, got)
		}
		for range 3 {
			s.look(&limit.Request{Tenant: "acme", Op: "POST /b/last"})
		}
		if got := strings.Count(log.String(), manyOpsLine); got != map[bool]int{true: 1}[want] {
			t.Errorf("%s: %d lines: %s", limits, got, log.String())
		}
	}
}
