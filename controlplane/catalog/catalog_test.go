package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// epoch is the time of the first write of a test.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func compileParts(parts map[string]json.RawMessage, _ bool) (*limit.Set, error) {
	set, _, err := config.CompileParts("table", parts, limit.CompileOptions{})
	return set, err
}

func newCatalog() *Catalog {
	return New(Options{Name: "table", Compile: compileParts, Log: slog.New(slog.DiscardHandler), Now: time.Now})
}

// soonAfter is a time at which tombstones have not expired.
func soonAfter() time.Time { return epoch.Add(time.Hour) }

// item returns a version of an item; without a body it is a tombstone.
func item(key string, version int64, body string) table.Item {
	it := table.Item{Key: key, Version: version, Actor: "test", At: epoch.Add(time.Duration(version) * time.Second), Deleted: body == ""}
	if body != "" {
		it.Body = json.RawMessage(body)
	}
	return it
}

// The items that most tests begin with.
var (
	shared = item("SHARED", 1, `{"version": 1, "default_plan": "free"}`)
	free   = item("PLAN#free", 1, `[{"id": "tenant", "by": ["tenant"], "rate": "10/s"}]`)
	pro    = item("PLAN#pro", 1, `[{"id": "tenant", "by": ["tenant"], "rate": "100/s"}]`)
	acme   = item("TENANT#acme", 1, `{"plan": "pro"}`)
)

// later advances the clock and applies no items.
func later(c *Catalog) {
	now := c.opts.Now().Add(retryEvery)
	c.opts.Now = func() time.Time { return now }
	c.Apply(nil)
}

func loaded(tb testing.TB, items ...table.Item) *Catalog {
	tb.Helper()
	c := newCatalog()
	if err := c.Load(items); err != nil {
		tb.Fatal(err)
	}
	return c
}

// account describes a set for tenants: their plans and limits.
func account(set *limit.Set, tenants ...string) string {
	var b strings.Builder
	for _, tenant := range tenants {
		fmt.Fprintf(&b, "%s on %s:", tenant, set.Plan(tenant))
		for _, l := range set.TenantLimits(tenant) {
			fmt.Fprintf(&b, " %s=%s", l.ID, l.Describe())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// wantPlan requires that a tenant is on a plan.
func wantPlan(tb testing.TB, c *Catalog, tenant, plan string) {
	tb.Helper()
	if got := c.Set().Plan(tenant); got != plan {
		tb.Errorf("%s is on plan %q, not %q; %.300s", tenant, got, plan, c.Status().Error)
	}
}

// TestLoadNothing: a table without limits and one with invalid limits give different
// errors.
func TestLoadNothing(t *testing.T) {
	for name, items := range map[string][]table.Item{"nothing": nil, "tombstones": {item("SHARED", 2, ""), item("TENANT#a", 2, "")}} {
		if err := newCatalog().Load(items); !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, items := range map[string][]table.Item{
		"one": {item("SHARED", 1, `{"version": 9}`)}, "two": {item("SHARED", 1, `{"version": 9}`), free}, "null": {item("SHARED", 1, `null`), free},
	} {
		if err := newCatalog().Load(items); err == nil || errors.Is(err, ErrEmpty) || !strings.Contains(err.Error(), "version") && !strings.Contains(err.Error(), "SHARED") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLoadAfterFailure: a table without a usable set leaves the catalog unchanged, so
// that the older items of a snapshot can be loaded.
func TestLoadAfterFailure(t *testing.T) {
	c := newCatalog()
	if err := c.Load([]table.Item{item("SHARED", 2, `{"version": 9}`), free, acme}); err == nil {
		t.Fatal("loaded")
	}
	if d := c.Digest(); d != (table.Digest{}) {
		t.Errorf("counted %v", d)
	}
	if err := c.Load([]table.Item{shared, free, pro, acme}); err != nil {
		t.Fatal(err)
	}
	wantPlan(t, c, "acme", "pro")
}

// TestLoadBadTenant: a tenant that cannot be used does not affect the limits of others.
func TestLoadBadTenant(t *testing.T) {
	items := []table.Item{shared, free, pro, acme, item("TENANT#lost", 3, `{"plan": "gone"}`)}
	for i := range 100 {
		items = append(items, item(fmt.Sprint("TENANT#t", i), 1, `{"plan": "pro"}`))
	}
	c := loaded(t, items...)
	for i := range 100 {
		wantPlan(t, c, fmt.Sprint("t", i), "pro")
	}
	if st := c.Status(); st.Rejections != 1 || !strings.HasPrefix(st.Error, "TENANT#lost, version 3: ") || strings.Contains(st.Error, ";") {
		t.Errorf("%+v", st)
	}
}

// TestBadItem: an item that cannot be used changes nothing and is listed once however
// often others change. It is used when the item that it needs has arrived.
func TestBadItem(t *testing.T) {
	c := loaded(t, shared, free, pro, acme)
	bad := []table.Item{item("TENANT#acme", 2, `{"plan": "team"}`), item("SHARED", 2, `{}`), item("PLAN#free", 2, `[{}]`), item("TENANT#b", 1, `no JSON`)}
	before := c.Set()
	if n := len(c.Apply(bad)); n != 4 || c.Set() != before {
		t.Fatalf("%d items were new, the set changed: %v", n, c.Set() != before)
	}
	for version := range int64(30) {
		c.Apply([]table.Item{item("TENANT#c", version+1, `{"plan": "pro"}`)})
	}
	wantPlan(t, c, "acme", "pro")
	wantPlan(t, c, "c", "pro")
	st := c.Status()
	for _, it := range bad {
		if !strings.Contains(st.Error, fmt.Sprintf("%s, version %d: ", it.Key, it.Version)) {
			t.Errorf("%s is not listed in %q", it.Key, st.Error)
		}
	}
	if st.Rejections != int64(len(bad)) {
		t.Errorf("%d rejections of %d items", st.Rejections, len(bad))
	}
	c.Apply([]table.Item{item("PLAN#team", 1, `[]`)})
	wantPlan(t, c, "acme", "team")
	if st := c.Status(); strings.Contains(st.Error, "acme") || !strings.Contains(st.Error, "SHARED") {
		t.Errorf("listed: %s", st.Error)
	}
	c.Apply([]table.Item{item("SHARED", 3, string(shared.Body)), item("PLAN#free", 3, `[]`), item("TENANT#b", 2, "")})
	if st := c.Status(); st.Error != "" {
		t.Errorf("listed: %s", st.Error)
	}
}

// TestPlanAfterItsTenants: however many tenants arrived before their plan, all are on
// it when it arrives, also beside an item that stays invalid.
func TestPlanAfterItsTenants(t *testing.T) {
	c := loaded(t, shared, free)
	c.Apply([]table.Item{item("TENANT#bad", 1, `{"plan": 7}`)})
	for i := range 100 {
		c.Apply([]table.Item{item(fmt.Sprint("TENANT#t", i), 1, `{"plan": "pro"}`)})
	}
	c.Apply([]table.Item{pro})
	for i := range 100 {
		wantPlan(t, c, fmt.Sprint("t", i), "pro")
	}
}

// TestStatusIsBounded: a status stays readable however many items cannot be used.
func TestStatusIsBounded(t *testing.T) {
	c := loaded(t, shared, free)
	for i := range 100 {
		c.Apply([]table.Item{item(fmt.Sprint("TENANT#t", i), 1, `{"plan": "pro"}`)})
	}
	if st := c.Status(); len(st.Error) > 3000 || !strings.HasSuffix(st.Error, "; and 80 more") || st.Rejections != 100 {
		t.Errorf("%d rejections: %s", st.Rejections, st.Error)
	}
}

// TestPlanGoesBeforeItsTenants: a deleted plan is removed when its last tenant is on
// another one, in either order of the messages, also beside an item that stays invalid.
func TestPlanGoesBeforeItsTenants(t *testing.T) {
	gone, moved, bad := item("PLAN#pro", 2, ""), item("TENANT#acme", 5, `{"plan": "free"}`), item("TENANT#bad", 1, `{"plan": 7}`)
	for _, batches := range [][][]table.Item{{{gone}, {moved}, {bad}}, {{bad}, {gone, moved}}, {{gone, bad}, {moved}}, {{bad, gone, moved}}} {
		c := loaded(t, shared, free, pro, acme)
		for _, items := range batches {
			c.Apply(items)
		}
		wantPlan(t, c, "acme", "free")
		later(c)
		if st := c.Status(); c.Set().Plans() != 1 || strings.Contains(st.Error, "PLAN#pro") {
			t.Errorf("%d plans: %s", c.Set().Plans(), st.Error)
		}
	}
}

// TestBadPlanCostsNoTenant: a plan that cannot be used is not retried with every tenant
// that changes, but after a while.
func TestBadPlanCostsNoTenant(t *testing.T) {
	c := loaded(t, shared, free, pro, acme)
	later(c)
	compiled := 0
	c.opts.Compile = func(parts map[string]json.RawMessage, _ bool) (*limit.Set, error) {
		if string(parts["PLAN#pro"]) == "7" {
			compiled++
		}
		return compileParts(parts, true)
	}
	c.Apply([]table.Item{item("PLAN#pro", 2, "7")})
	compiled = 0
	for v := range int64(20) {
		c.Apply([]table.Item{item("TENANT#b", v+1, `{"plan": "pro"}`)})
		wantPlan(t, c, "b", "pro")
	}
	if compiled > 4 {
		t.Errorf("tried %d times", compiled)
	}
	compiled = 0
	later(c)
	if compiled == 0 {
		t.Error("not tried again")
	}
}

// TestConditionOnAnother: a tenant changes where a limit of a plan is for another
// tenant.
func TestConditionOnAnother(t *testing.T) {
	c := loaded(t, shared, free, item("PLAN#pro", 1, `[{"id": "own", "by": ["tenant"], "when": {"tenant": "acme"}, "rate": "100/s"}]`), acme)
	c.Apply([]table.Item{item("TENANT#b", 1, `{"plan": "pro"}`)})
	wantPlan(t, c, "b", "pro")
	c.Apply([]table.Item{item("TENANT#acme", 2, ``)}) // would leave the limit without a tenant
	wantPlan(t, c, "acme", "pro")
	if st := c.Status(); !strings.Contains(st.Error, "TENANT#acme, version 2") || st.Rejections != 1 {
		t.Errorf("%+v", st)
	}
}

// TestVersionNamesTheSet: catalogs with the same limits in use have the same version,
// whatever other messages they received.
func TestVersionNamesTheSet(t *testing.T) {
	bad, b := item("TENANT#acme", 2, `{"plan": 7}`), item("TENANT#b", 1, `{"plan": "free"}`)
	first, last, never := loaded(t, shared, free, pro, acme), loaded(t, shared, free, pro, acme), loaded(t, shared, free, pro, acme, b)
	first.Apply([]table.Item{bad})
	first.Apply([]table.Item{b})
	last.Apply([]table.Item{b})
	last.Apply([]table.Item{bad})
	if v := never.Status().Version; v == "" || first.Status().Version != v || last.Status().Version != v {
		t.Errorf("versions %q, %q and %q", v, first.Status().Version, last.Status().Version)
	}
	if first.Digest() != last.Digest() || first.Digest() == never.Digest() {
		t.Error("the digest is not of all that was told")
	}
}

// TestNoItem: an invalid limits item is logged, and neither counted nor used.
func TestNoItem(t *testing.T) {
	c := loaded(t, shared, free)
	want := c.Digest()
	for range 3 {
		if n := len(c.Apply([]table.Item{item("TENANT#", 1, `{}`), item("x", 1, `{}`), item("TENANT#zero", 0, `{}`)})); n != 0 {
			t.Errorf("%d are new", n)
		}
	}
	if st := c.Status(); c.Digest() != want || st.Rejections != 9 || st.Error != "" {
		t.Errorf("%v, not %v; %+v", c.Digest(), want, st)
	}
}

// TestIgnoredItem: the status names an item of the table that lacks attributes, and why, until it is
// written again or gone.
func TestIgnoredItem(t *testing.T) {
	c := loaded(t, shared, free)
	byHand := table.Item{Key: "TENANT#hand", Version: 1}
	other := table.Item{Key: "other", Version: 1}
	read := func(items ...table.Item) string {
		t.Helper()
		defer c.EndReading()
		if _, _, err := c.ApplyAll(append(items, shared, free), c.BeginReading()); err != nil {
			t.Fatal(err)
		}
		return c.Status().Error
	}
	const want = "TENANT#hand, version 1: not a valid limits item: it lacks a valid body, updated_by, updated_at: write items by limitgate limits push"
	if got := read(byHand, other); got != want {
		t.Errorf("the status: %s", got)
	}
	if c.Apply([]table.Item{item("TENANT#hand", 2, `{"plan": "free"}`)}); c.Status().Error != "" {
		t.Errorf("written again: %s", c.Status().Error)
	}
	c = loaded(t, shared, free)
	if read(byHand); read() != "" {
		t.Errorf("gone: %s", c.Status().Error)
	}
	var many []table.Item
	for i := range 3 * maxListed {
		many = append(many, table.Item{Key: fmt.Sprint("TENANT#", i)})
	}
	if n := strings.Count(read(many...), "TENANT#"); n != maxListed {
		t.Errorf("%d are listed", n)
	}
}

// TestPlanByHandAtStart: a plan that was written by hand prevents a start, as an
// invalid one does: its tenants would get the limits of another plan.
func TestPlanByHandAtStart(t *testing.T) {
	byHand := pro
	byHand.Actor = ""
	for name, plan := range map[string]table.Item{"by hand": byHand, "wrong": item("PLAN#pro", 1, `[{}]`)} {
		c := newCatalog()
		if err := c.Load([]table.Item{shared, free, plan, acme}); err == nil || !strings.Contains(err.Error(), "pro") {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Load([]table.Item{shared, free, pro, acme}); err != nil {
			t.Errorf("%s, and then from a snapshot: %v", name, err)
		}
	}
}

// TestChangeThatIsNoPart: a set that cannot be changed in part is compiled from all
// parts, also when no item is new.
func TestChangeThatIsNoPart(t *testing.T) {
	c := loaded(t, shared, free, pro, acme)
	compile, another := c.opts.Compile, true
	c.opts.Compile = func(parts map[string]json.RawMessage, all bool) (*limit.Set, error) {
		set, err := compile(parts, all)
		if another && err == nil {
			set = set.Try(loadedSet(t, set.IDs), limit.TrialWhole)
		}
		return set, err
	}
	c.compact()
	c.grown--
	if _, err := c.compile(nil, true); err != nil {
		t.Error(err)
	}
}

// loadedSet returns a set that can be a canary beside a set with ids.
func loadedSet(t *testing.T, ids []string) *limit.Set {
	t.Helper()
	set, _, err := config.CompileParts("tried", map[string]json.RawMessage{"SHARED": shared.Body, "PLAN#free": free.Body, "PLAN#pro": pro.Body}, limit.CompileOptions{IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestOnChange: sets are passed on one at a time, each as it comes into use.
func TestOnChange(t *testing.T) {
	c := loaded(t, shared, free, pro)
	var got []*limit.Set
	c.OnChange(func(set *limit.Set) { got = append(got, set) }) // no lock: the race detector checks
	done := make(chan struct{})
	for g := range 4 {
		go func() {
			for v := range int64(20) {
				c.Apply([]table.Item{item(fmt.Sprint("TENANT#t", g), v+1, `{"plan": "pro"}`)})
			}
			done <- struct{}{}
		}()
	}
	for range 4 {
		<-done
	}
	if len(got) != 80 || got[79] != c.Set() {
		t.Fatalf("%d sets, the last is in use: %v", len(got), got[len(got)-1] == c.Set())
	}
	if !slices.IsSortedFunc(got, func(a, b *limit.Set) int { return a.Tenants() - b.Tenants() }) {
		t.Error("sets are out of order")
	}
	c.Apply([]table.Item{item("TENANT#t0", 20, `{}`), item("TENANT#t0", 21, `{"plan": 7}`)})
	if len(got) != 80 {
		t.Error("told of a set that is not new")
	}
}

// TestMadeAgain: an item that is created again is newer than its tombstone while that
// exists. It begins with version 1 after the tombstone has expired.
func TestMadeAgain(t *testing.T) {
	c := loaded(t, shared, free, pro, item("TENANT#acme", 7, ""))
	c.opts.Now = soonAfter
	c.Apply([]table.Item{acme})
	wantPlan(t, c, "acme", "free")
	c.opts.Now = func() time.Time { return epoch.Add(table.TombstoneTTL + time.Hour) }
	c.Apply([]table.Item{acme})
	wantPlan(t, c, "acme", "pro")
	if want := loaded(t, shared, free, pro, acme).Digest(); c.Digest() != want {
		t.Errorf("the digest is %+v, and that of the table %+v", c.Digest(), want)
	}
}
