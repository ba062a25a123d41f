package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit/bucket"
)

// The values of the drawn files and requests: few, so that they coincide.
var (
	tenantNames = []string{"acme", "bolt", "c{x}", "d;e%7B", "ünï cø"}
	ops         = []string{"", "GET /a", "GET /ab", "POST /pay", "w"}
	opPatterns  = []string{`"GET /a"`, `"GET /*"`, `"GET /a*"`, `"POST /pay"`, `"w*"`, `"*"`}
	ips         = []string{"", "10.0.0.1", "10.0.0.2", "::ffff:10.0.0.1", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"}
	ipPatterns  = []string{"10.0.0.0/24", "10.0.0.0/8", `"2001:db8::/32"`}
	dimValues   = map[string][]string{"user": {"u1", "u2", "10.0.0.1", "a{b};c"}, "region": {"eu", "us", "xx"}, "api_key": {"k1", "10.0.0.1"}}
	dimNames    = []string{"user", "region", "api_key"}
	zones       = []string{"UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Santiago", "Asia/Beirut"}
	tenantBys   = []string{"[tenant]", "[tenant]", "[tenant]", "[tenant, op]", "[tenant, user]", "[tenant, region]", "[tenant, ip]", `[tenant, "api_key|user|ip"]`, "[tenant, op, region]", `[tenant, "region|op"]`}
	sharedBys   = []string{"[ip]", "[ip]", "[op]", "[region]", `["api_key|user|ip"]`, "[]", "[op, region]"}
	algorithms  = []string{"token_bucket", "sliding_window", "fixed_window", "sliding_log", "concurrency"}
)

// one returns one of several values.
func one[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// chance returns true one time in n.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// fileDraw draws limits files.
type fileDraw struct {
	r *rand.Rand
	// simple files have only the keys for counting.
	simple bool
	// algorithms are those of this history.
	algorithms []string
	names      []string // of tenants
}

func newFileDraw(r *rand.Rand) *fileDraw {
	d := &fileDraw{r: r, simple: chance(r, 3), names: tenantNames[:1+r.IntN(len(tenantNames))], algorithms: algorithms}
	if chance(r, 2) {
		d.algorithms = []string{one(r, algorithms), one(r, algorithms[:4])}
	}
	return d
}

// file draws a valid file.
func (d *fileDraw) file() *file {
	f := &file{}
	if chance(d.r, 3) {
		f.dimensions = []field{{"region", "{values: [eu, us]}"}, {"user", "{}"}, {"api_key", "{}"}}
		if chance(d.r, 3) {
			f.dimensions[1].value = "{values: [u1, u2]}"
		}
		if chance(d.r, 2) {
			f.dimensions[2].value = "{hash: true}"
		}
	}
	for i := range 1 + d.r.IntN(3) {
		f.plans = append(f.plans, plan{name: fmt.Sprintf("p%d", i)})
	}
	if !chance(d.r, 4) {
		f.head = append(f.head, field{"default_plan", one(d.r, f.plans).name})
	}
	f.head = append(f.head, field{"max_levels", "64"})
	for i := range f.plans {
		for n := range 1 + d.r.IntN(4) {
			d.add(f, &f.plans[i].rules, d.rule(fmt.Sprintf("l%d", n), tenantBys, &f.plans[i]))
		}
	}
	if !chance(d.r, 3) {
		for n := range 1 + d.r.IntN(2) {
			d.add(f, &f.shared, d.rule(fmt.Sprintf("s%d", n), sharedBys, nil))
		}
	}
	for _, name := range d.names {
		if chance(d.r, 2) {
			continue
		}
		f.tenants = append(f.tenants, tenant{name: name, plan: one(d.r, f.plans).name})
		t := &f.tenants[len(f.tenants)-1]
		for chance(d.r, 2) && !d.simple {
			d.override(f, t)
		}
	}
	return f
}

// add adds a rule if the file is valid with it.
func (d *fileDraw) add(f *file, rules *[]rule, r rule) {
	was := *rules
	*rules = append(was[:len(was):len(was)], r)
	if !f.valid() {
		*rules = was
	}
}

// override gives a tenant an override.
func (d *fileDraw) override(f *file, t *tenant) {
	for i := range f.plans {
		p := &f.plans[i]
		if p.name != t.plan || len(p.rules) == 0 {
			continue
		}
		of := one(d.r, p.rules)
		for _, o := range t.overrides {
			if o.id == of.id {
				return
			}
		}
		change := rule{id: of.id}
		for _, f := range d.changed(of).fields {
			if f.value != of.get(f.key) {
				change.fields = append(change.fields, f)
			}
		}
		if len(change.fields) > 0 {
			d.add(f, &t.overrides, change)
		}
	}
}

// rule draws a limit.
func (d *fileDraw) rule(id string, bys []string, p *plan) rule {
	r := rule{id: id}
	set := func(key, value string) { r.fields = append(r.fields, field{key, value}) }
	set("by", one(d.r, bys))
	if !chance(d.r, 4) {
		set("group", fmt.Sprintf("g%d", d.r.IntN(4)))
	}
	if !d.simple {
		d.conditions(&r, p != nil)
		if chance(d.r, 3) {
			set("missing", one(d.r, []string{"deny", "share", "share"}))
		}
		if chance(d.r, 6) {
			set("mode", one(d.r, []string{"shadow", "shadow", "off"}))
		} else if chance(d.r, 8) {
			set("enforce", one(d.r, []string{"10%", "50%", "87.5%"}))
		}
		if chance(d.r, 8) {
			set("warn", one(d.r, []string{"50%", "80%", "100%"}))
		}
		if p != nil && len(p.rules) > 0 && chance(d.r, 8) {
			set("replaces", "["+one(d.r, p.rules).id+"]")
		}
		if chance(d.r, 14) && len(r.get("when")) > 0 && r.get("enforce") == "" {
			set("action", one(d.r, []string{"deny", "allow"}))
			if r.get("action") == "allow" && chance(d.r, 2) { // at every level
				r.fields = slices.DeleteFunc(r.fields, func(f field) bool { return f.key == "by" || f.key == "group" })
			}
			return r
		}
	}
	algorithm := one(d.r, d.algorithms)
	if p == nil && algorithm == "concurrency" {
		algorithm = "token_bucket"
	}
	return d.counted(r, algorithm)
}

// counted adds an algorithm and its amounts to a rule.
func (d *fileDraw) counted(r rule, algorithm string) rule {
	r = r.with("algorithm", algorithm)
	if algorithm == "concurrency" {
		return r.with("slots", fmt.Sprint(1+d.r.IntN(4)))
	}
	count, period := 1+d.r.Int64N(20), one(d.r, []string{"s", "s", "10s", "m", "7s", "h", "d"})
	switch d.r.IntN(16) {
	case 0:
		count = 1 + d.r.Int64N(1_000_000)
	case 1:
		count, period = bucket.MaxCapacity-d.r.Int64N(3), "366d"
	case 2:
		count, period = 1+d.r.Int64N(5), fmt.Sprintf("%ds", 1+d.r.Int64N(bucket.MaxPeriod/1e6))
	}
	switch {
	case algorithm == "sliding_log":
		count = 1 + (count-1)%bucket.MaxLogUnits
	case algorithm == "fixed_window" && chance(d.r, 3):
		period = one(d.r, []string{"day", "month"})
		if !chance(d.r, 3) {
			r = r.with("timezone", one(d.r, zones))
		}
	case algorithm == "token_bucket" && chance(d.r, 2):
		r = r.with("burst", fmt.Sprint(1+d.r.Int64N(30)))
		if chance(d.r, 12) {
			r = r.with("burst", fmt.Sprint(1+d.r.Int64N(bucket.MaxCapacity)))
		}
	}
	r = r.with("rate", fmt.Sprintf("%d/%s", count, period))
	if !d.simple && chance(d.r, 6) {
		return r.with("cost", fmt.Sprint(1+d.r.Int64N(min(count, 3))))
	}
	if !d.simple && chance(d.r, 6) {
		return r.with("max_cost", fmt.Sprint(1+d.r.Int64N(min(count, 8))))
	}
	return r
}

// conditions adds conditions to a rule. Only those on op are exact: it is not documented
// which of two exact ones on other dimensions is the more specific.
func (d *fileDraw) conditions(r *rule, ofPlan bool) {
	var when []string
	if chance(d.r, 3) {
		when = append(when, "op: "+one(d.r, opPatterns))
	}
	if chance(d.r, 8) {
		when = append(when, "ip: "+one(d.r, ipPatterns))
	}
	if chance(d.r, 10) {
		dim := one(d.r, dimNames)
		when = append(when, fmt.Sprintf("%s: %q", dim, one(d.r, dimValues[dim])[:1]+"*"))
	}
	if !ofPlan && chance(d.r, 8) {
		when = append(when, fmt.Sprintf("tenant: %q", one(d.r, tenantNames)[:1]+"*"))
	}
	if len(when) > 0 {
		r.fields = append(r.fields, field{"when", "{" + strings.Join(when, ", ") + "}"})
	}
}

// changed draws another version of a rule.
func (d *fileDraw) changed(r rule) rule {
	if r.get("action") != "" {
		return r
	}
	algorithm := r.get("algorithm")
	switch d.r.IntN(8) {
	case 0:
		if r.get("enforce") != "" {
			return r.with("enforce", one(d.r, []string{"5%", "25%", "60%"}))
		}
		return r.with("mode", one(d.r, []string{"enforce", "shadow", "off"}))
	case 1:
		if algorithm != "concurrency" {
			return r.with("cost", fmt.Sprint(1+d.r.IntN(2)))
		}
	case 2:
		if algorithm == "token_bucket" {
			return r.with("burst", fmt.Sprint(1+d.r.Int64N(30)))
		}
	case 3:
		algorithm = one(d.r, d.algorithms)
	}
	for _, key := range []string{"burst", "timezone", "cost", "max_cost", "slots", "rate"} {
		if key != "cost" && key != "max_cost" || chance(d.r, 2) {
			r = r.with(key, "")
		}
	}
	return d.counted(r, algorithm)
}

// change draws another version of a file, for a reload.
func (d *fileDraw) change(f *file) *file {
	f = f.clone()
	for range 1 + d.r.IntN(3) {
		was := f.clone()
		switch d.r.IntN(8) {
		case 0:
			if len(f.tenants) > 0 {
				t := &f.tenants[d.r.IntN(len(f.tenants))]
				t.plan, t.overrides = one(d.r, f.plans).name, nil
			}
		case 1:
			if len(f.tenants) > 0 {
				d.override(f, &f.tenants[d.r.IntN(len(f.tenants))])
			}
		case 2:
			lists := f.ruleLists()
			if list := one(d.r, lists); len(*list) > 0 {
				i := d.r.IntN(len(*list))
				*list = append((*list)[:i:i], (*list)[i+1:]...)
			}
		default:
			lists := f.ruleLists()
			if list := one(d.r, lists); len(*list) > 0 {
				i := d.r.IntN(len(*list))
				(*list)[i] = d.changed((*list)[i])
			}
		}
		if !f.valid() {
			f = was
		}
	}
	return f
}
