package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/limit"
)

// drawnFile has the limits of a plan, by their ids, overrides of a tenant and shared limits, with their fields, and the declared values of
// a dimension.
type drawnFile struct {
	plan, overrides, shared map[string]string
	regions                 string
}

// drawnConditions are conditions of limits, some of which are within others.
var drawnConditions = []string{"", "when: {op: x}", "when: {op: x*}", "when: {ip: 10.0.0.0/8}", "when: {op: x, ip: 10.0.0.0/8}", "when: {region: eu*}", "when: {region: eu1}"}

// drawnRegions are declarations of the dimension region.
var drawnRegions = []string{"{}", "{values: [eu1, eu2]}", "{values: [eu1]}", "{values: [eu1, eu2, us]}"}

// drawLimit draws the fields of a limit.
func drawLimit(t *rapid.T, shared bool) string {
	one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	by := one("by", "[tenant]", "[tenant]", "[tenant, user]")
	if shared {
		by = one("by", "[ip]", "[]")
	}
	fields := []string{"by: " + by}
	add := func(label string, of ...string) {
		if field := one(label, of...); field != "" {
			fields = append(fields, field)
		}
	}
	add("when", append([]string{""}, drawnConditions...)...)
	grouped := len(fields)
	add("group", "", "", "group: g")
	grouped = len(fields) - grouped
	add("mode", "", "", "", "mode: shadow", "mode: off")
	action := one("action", "rate: 5/s", "rate: 10/s", "rate: 20/s", "action: deny", "action: allow")
	fields = append(fields, action)
	if action == "action: allow" && grouped == 0 && rapid.Bool().Draw(t, "every level") {
		return strings.Join(fields[1:], ", ")
	}
	if strings.Contains(by, "user") {
		add("missing", "", "missing: deny", "missing: share")
	}
	if !shared {
		return strings.Join(fields, ", ") + drawReplaces(t)
	}
	return strings.Join(fields, ", ")
}

func drawReplaces(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", "", ", replaces: [a]", ", replaces: [b]", ", replaces: [c]", ", replaces: [a, b]", ", replaces: [b, c]"}).Draw(t, "replaces")
}

func drawOverride(t *rapid.T) string {
	return rapid.SampledFrom([]string{"rate: 5/s", "rate: 10/s", "rate: 20/s", "mode: shadow", "mode: enforce", "mode: off", "action: allow"}).Draw(t, "override")
}

// change draws a change of a file.
func (f *drawnFile) change(t *rapid.T) *drawnFile {
	next := &drawnFile{maps.Clone(f.plan), maps.Clone(f.overrides), maps.Clone(f.shared), f.regions}
	id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "changed")
	switch rapid.IntRange(0, 7).Draw(t, "change") {
	case 0:
		next.plan[id] = drawLimit(t, false)
	case 1:
		delete(next.plan, id)
		delete(next.overrides, id)
	case 2:
		delete(next.overrides, id)
	case 3:
		if fields := next.plan[id]; fields != "" {
			fields, _, _ = strings.Cut(fields, ", replaces: ")
			next.plan[id] = fields + drawReplaces(t)
		}
	case 4:
		if fields := next.plan[id]; fields != "" {
			for _, condition := range drawnConditions[1:] {
				fields = strings.ReplaceAll(fields, ", "+condition, "")
			}
			if condition := rapid.SampledFrom(drawnConditions).Draw(t, "condition"); condition != "" && strings.HasPrefix(fields, "by: ") {
				fields += ", " + condition
			}
			next.plan[id] = fields
		}
	case 5:
		next.regions = rapid.SampledFrom(drawnRegions).Draw(t, "regions")
	case 6:
		next.shared["s1"] = drawLimit(t, true)
	default:
		if next.plan[id] != "" {
			next.overrides[id] = drawOverride(t)
		}
	}
	return next
}

// parse returns the limits of a file, or nil if they are not valid.
func (f *drawnFile) parse() (set *limit.Set, text string) {
	list := func(of map[string]string) string {
		var all []string
		for _, id := range slices.Sorted(maps.Keys(of)) {
			all = append(all, "{id: "+id+", "+of[id]+"}")
		}
		return strings.Join(all, ", ")
	}
	var overrides []string
	for _, id := range slices.Sorted(maps.Keys(f.overrides)) {
		overrides = append(overrides, id+": {"+f.overrides[id]+"}")
	}
	text = fmt.Sprintf("version: 1\ndefault_plan: p\ndimensions: {region: %s, user: {}}\nplans: {p: [%s]}\nshared: [%s]\ntenants: {acme: {plan: p, overrides: {%s}}}\n", cmp.Or(f.regions, "{}"), list(f.plan), list(f.shared), strings.Join(overrides, ", "))
	set, _, err := ParseLimits("f", []byte(text), limit.CompileOptions{})
	if err != nil {
		return nil, text
	}
	return set, text
}

var modelHasher, _ = limit.NewAddrHasher([]byte(strings.Repeat("k", 32)), limit.Prefixes{})

// decided is how enforced limits decide a request: whether one denies it by itself, and the rates by which the others count, by their levels.
func decided(set *limit.Set, req *limit.Request) (denied bool, rates map[string]int64) {
	var b limit.Buffer
	set.Resolve(req, modelHasher, 0, &b)
	rates = map[string]int64{}
	for _, it := range b.Items {
		level := strings.Join(it.Limit.Level(), ",")
		switch {
		case it.Limit.Mode != limit.ModeEnforce:
		case it.Source == limit.SourcePolicy:
			denied = true
		case rates[level] == 0 || it.Limit.Rate.Count < rates[level]:
			rates[level] = it.Limit.Rate.Count
		}
	}
	return denied, rates
}

// TestLoosenedModel: of random changes those have a line with which a request is admitted that was denied, or counts by a higher rate, or none, of some
// level; a file that has not changed has none.
func TestLoosenedModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &drawnFile{map[string]string{}, map[string]string{}, map[string]string{}, rapid.SampledFrom(drawnRegions).Draw(t, "declared")}
		for _, id := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "limits")] {
			f.plan[id] = drawLimit(t, false)
			if rapid.IntRange(0, 3).Draw(t, "overridden") == 0 {
				f.overrides[id] = drawOverride(t)
			}
		}
		if rapid.Bool().Draw(t, "shares") {
			f.shared["s1"] = drawLimit(t, true)
		}
		before, text := f.parse()
		after, changed := f.change(t).parse()
		if before == nil || after == nil {
			return
		}
		if lines := limit.Loosened(before, before, []string{"acme"}); len(lines) != 0 {
			t.Fatalf("of no change: %q\n%s", lines, text)
		}
		checkLoosened(t, before, after, text+"\n"+changed)
	})
}

// checkLoosened fails if a request is admitted that was denied, or counts by a higher rate of a level, or none, and no
// line says so.
func checkLoosened(t *rapid.T, before, after *limit.Set, text string) {
	if lines := limit.Loosened(before, after, []string{"acme"}); len(lines) != 0 {
		return
	}
	for i := range 72 {
		req := &limit.Request{Tenant: []string{"acme", "other"}[i&1], Op: []string{"x", "y", "xy"}[i/2%3], Addr: netip.MustParseAddr([]string{"10.0.0.1", "192.0.2.1"}[i/6%2]), Cost: 1}
		if i/12%2 == 1 {
			req.Dims = []limit.Dim{{Name: "user", Value: "u"}}
		}
		if region := []string{"", "eu1", "eu2"}[i/24]; region != "" {
			req.Dims = append(req.Dims, limit.Dim{Name: "region", Value: region})
		}
		wasDenied, was := decided(before, req)
		isDenied, is := decided(after, req)
		more := wasDenied
		for level, rate := range was {
			more = more || is[level] == 0 || is[level] > rate
		}
		if more && !isDenied {
			t.Fatalf("%+v: denied %v %v, then %v %v, and no line:\n%s", *req, wasDenied, was, isDenied, is, text)
		}
	}
}

// TestLoosenedReplaces: the same of changes of what a limit replaces.
func TestLoosenedReplaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		replaces := func(label string) string {
			return one(label, "", ", replaces: [b]", ", replaces: [c]", ", replaces: [d]", ", replaces: [b, c]", ", replaces: [c, d]", ", replaces: [b, d]")
		}
		f := &drawnFile{map[string]string{}, map[string]string{}, map[string]string{}, ""}
		for _, id := range []string{"b", "c", "d"} {
			by := map[string]string{"b": "[tenant, op]", "c": "[tenant]", "d": "[tenant]"}[id]
			f.plan[id] = "by: " + by + one("when of "+id, "", "", ", when: {op: x}", ", when: {ip: 10.0.0.0/8}") + one("group of "+id, ", group: g", ", group: "+id) +
				one("action of "+id, ", rate: 5/s", ", rate: 10/s", ", rate: 20/s", ", rate: 30/s", ", action: allow", ", action: deny")
		}
		if !strings.Contains(f.plan["b"], "action") {
			f.plan["b"] += one("replaces of b", "", ", replaces: [c]", ", replaces: [c, d]")
		}
		f.plan["a"] = "by: [tenant, op, user], missing: share" + one("when of a", "", ", when: {op: x}") + one("group of a", ", group: a", ", group: g") + one("rate of a", ", rate: 5/s", ", rate: 10/s", ", rate: 40/s")
		if rapid.IntRange(0, 5).Draw(t, "overridden") == 0 {
			f.overrides["b"] = drawOverride(t)
		}
		rest := f.plan["a"]
		f.plan["a"] = rest + replaces("was")
		before, text := f.parse()
		f.plan["a"] = rest + replaces("is")
		after, changed := f.parse()
		if before != nil && after != nil {
			checkLoosened(t, before, after, text+"\n"+changed)
		}
	})
}

// TestLoosenedFreed: the same of changes of a limit that allows, in whose place another limit may decide, which replaces a third one.
func TestLoosenedFreed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		rate := func(label string) string { return one(label, ", rate: 5/s", ", rate: 10/s", ", rate: 20/s") }
		allow := func(label string) string {
			return "by: " + one("by of "+label, "[tenant]", "[tenant, user]") + ", " + one("when of "+label, drawnConditions[1:]...) + one("group of "+label, "", "", ", group: g") +
				one("action of "+label, ", action: allow", ", action: allow", ", action: allow, mode: shadow", ", rate: 5/s")
		}
		f := &drawnFile{map[string]string{}, map[string]string{}, map[string]string{}, ""}
		f.plan["a"] = allow("was")
		f.plan["b"] = "by: " + one("by of b", "[tenant]", "[tenant, user]") + one("when of b", "", ", when: {op: x*}") + one("group of b", "", "", ", group: g") + rate("rate of b") + ", replaces: [c]"
		f.plan["c"] = "by: " + one("by of c", "[tenant]", "[tenant, ip]") + one("rate of c", ", rate: 5/s", ", rate: 10/s", ", rate: 20/s", ", action: deny")
		next := &drawnFile{maps.Clone(f.plan), maps.Clone(f.overrides), f.shared, ""}
		change := rapid.IntRange(0, 3).Draw(t, "change")
		switch change {
		case 0:
			delete(next.plan, "a")
		case 1:
			next.plan["a"] = allow("is")
		case 2:
			next.overrides["a"] = drawOverride(t)
		default:
			f.overrides["a"] = drawOverride(t)
		}
		if rapid.Bool().Draw(t, "overridden") {
			f.overrides["b"] = drawOverride(t)
			next.overrides["b"] = f.overrides["b"]
		}
		before, text := f.parse()
		after, changed := next.parse()
		if before != nil && after != nil {
			checkLoosened(t, before, after, text+"\n"+changed)
		}
	})
}
