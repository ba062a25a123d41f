package denials

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const second = 1_000_000

func newRing(t *testing.T, log *slog.Logger) *Ring {
	t.Helper()
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	return New(addrs, log)
}

// denied returns a decision that a limit denied, and its items.
func denied(l *limit.Limit) (*limit.Decision, []limit.Item) {
	items := []limit.Item{{Limit: l, Cost: 2, Source: limit.SourceStore, Verdict: bucket.Verdict{Wait: 1500, Remaining: 1}}}
	return &limit.Decision{Binding: l, Source: limit.SourceStore, RetryAfter: 1700}, items
}

var (
	noTrial  = new(limit.Set)
	payments = &limit.Limit{ID: "payments", Plan: "free", Params: bucket.Params{Capacity: 10}}
)

// TestDenial checks the fields of a denial, and that no address is in it or in the log.
func TestDenial(t *testing.T) {
	var lines bytes.Buffer
	r := newRing(t, slog.New(slog.NewTextHandler(&lines, nil)))
	tenant := []byte("acme")
	req := &limit.Request{Tenant: string(tenant), Op: "POST /pay", Addr: netip.MustParseAddr("203.0.113.7"), Cost: 2}
	d, items := denied(payments)
	r.Observe(noTrial, req, 5*second, d, items)
	got := r.Last(10)
	if len(got) != 1 {
		t.Fatalf("%d denials", len(got))
	}
	if got[0].Address == "" || strings.Contains(got[0].Address, "203") {
		t.Errorf("address %q", got[0].Address)
	}
	want := Denial{
		At: got[0].At, Tenant: "acme", Operation: "POST /pay", Address: got[0].Address, Limit: "payments", Plan: "free", Mode: "enforce",
		Source: "store", Cost: 2, Capacity: 10, Remaining: 1, RetryAfter: 1700,
	}
	if got[0] != want || got[0].At.UnixMicro() != 5*second {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	if line := lines.String(); !strings.Contains(line, "msg=denial limit=payments plan=free mode=enforce tenant=acme") || strings.Contains(line, "203.0.113.7") {
		t.Errorf("log %q", line)
	}
}

// TestDenialOfKey: denials by commands of other limiters have the key, each its own, and the log does not.
func TestDenialOfKey(t *testing.T) {
	var lines bytes.Buffer
	r := newRing(t, slog.New(slog.NewTextHandler(&lines, nil)))
	d, items := denied(payments)
	for _, key := range []string{"user9", "user10", strings.Repeat("k", 100)} {
		r.Observe(noTrial, &limit.Request{Inline: payments, Key: key, Cost: 1}, 5*second, d, items)
	}
	got := r.Last(10)
	if len(got) != 3 || got[2].Key != "user9" || got[1].Key != "user10" || got[0].Key != strings.Repeat("k", 64)+"..." || got[2].Tenant != "" {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(lines.String(), "user9") {
		t.Errorf("log %q", lines.String())
	}
}

// TestShadow checks that a denial without effect is kept, and an admission is not.
func TestShadow(t *testing.T) {
	r := newRing(t, nil)
	trial := &limit.Limit{ID: "trial", Mode: limit.ModeShadow}
	_, items := denied(trial)
	admitted := &limit.Decision{Allowed: true, Item: -1}
	r.Observe(noTrial, &limit.Request{Tenant: "a"}, second, admitted, items)
	items[0].Allowed = true
	r.Observe(noTrial, &limit.Request{Tenant: "b"}, 2*second, admitted, items)
	r.Observe(noTrial, &limit.Request{Tenant: "c"}, 3*second, admitted, nil)
	if got := r.Last(10); len(got) != 1 || got[0].Tenant != "a" || got[0].Mode != "shadow" || got[0].Limit != "trial" || got[0].RetryAfter != 1500 {
		t.Errorf("got %+v", got)
	}
}

// TestItem checks whose fields a denial has: those of the item that denied, whose source may be another than
// that of the decision, and of a ban, missing: deny, or a denial without an item, the cost of the request alone.
func TestItem(t *testing.T) {
	ban := &limit.Limit{ID: "ban", Plan: "p", Action: limit.ActionDeny}
	items := []limit.Item{
		{Limit: &limit.Limit{ID: "wide"}, Cost: 1, Source: limit.SourceStore, Verdict: bucket.Verdict{Allowed: true, Remaining: 7}},
		{Limit: payments, Cost: 2, Source: limit.SourceCache, Verdict: bucket.Verdict{Remaining: 1}},
		{Limit: ban, Source: limit.SourcePolicy, Verdict: bucket.Verdict{Wait: bucket.Never}},
		{Limit: payments, Source: limit.SourcePolicy, Verdict: bucket.Verdict{Wait: bucket.Never}}, // by missing: deny
	}
	for name, row := range map[string]struct {
		item  int
		items []limit.Item
		want  Denial
	}{
		"the second item":  {1, items, Denial{Limit: "payments", Plan: "free", Source: "cache", Cost: 2, Capacity: 10, Remaining: 1}},
		"a ban":            {2, items, Denial{Limit: "ban", Plan: "p", Source: "policy", Cost: 5}},
		"missing: deny":    {3, items, Denial{Limit: "payments", Plan: "free", Source: "policy", Cost: 5}},
		"no item":          {-1, items, Denial{Source: "store", Cost: 5}},
		"items not passed": {1, nil, Denial{Source: "store", Cost: 5}},
		"one of too few":   {1, items[:1], Denial{Source: "store", Cost: 5}},
	} {
		r := New(nil, nil)
		req := &limit.Request{Tenant: "acme", Op: "POST /pay", Addr: netip.MustParseAddr("203.0.113.7"), Cost: 5}
		r.Observe(noTrial, req, second, &limit.Decision{Item: row.item, Source: limit.SourceStore, RetryAfter: 40}, row.items)
		row.want.At, row.want.Tenant, row.want.Operation, row.want.Mode, row.want.RetryAfter = time.UnixMicro(second), "acme", "POST /pay", "enforce", 40
		if got := r.Last(2); len(got) != 1 || got[0] != row.want {
			t.Errorf("%s: got %+v, want %+v", name, got, row.want)
		}
	}
}

// TestShadowBehindEnforced checks that the item of an admission that is kept is the first one without effect.
func TestShadowBehindEnforced(t *testing.T) {
	r := newRing(t, nil)
	_, items := denied(payments)
	items = append(items, items[0], items[0])
	items[1].Limit, items[2].Limit = &limit.Limit{ID: "trial", Mode: limit.ModeShadow}, &limit.Limit{ID: "other", Mode: limit.ModeShadow}
	r.Observe(noTrial, &limit.Request{Tenant: "a"}, second, &limit.Decision{Allowed: true}, items)
	if got := r.Last(2); len(got) != 1 || got[0].Limit != "trial" {
		t.Errorf("got %+v", got)
	}
}

// placeOf returns the place among the recent denials of one by payments.
func placeOf(r *Ring, tenant, op string) uint64 {
	return (maphash.String(r.seed, tenant) + 3*maphash.String(r.seed, op) + 5*maphash.String(r.seed, "payments")) % uint64(len(r.recent))
}

// TestBounds checks the two bounds of the sample, to the microsecond, and what counts as a repeat: the same limit,
// tenant and operation.
func TestBounds(t *testing.T) {
	d, items := denied(payments)
	_, others := denied(&limit.Limit{ID: "other", Params: bucket.Params{Capacity: 10}})
	type denial struct {
		at         int64
		tenant, op string
		items      []limit.Item
	}
	for name, row := range map[string]struct {
		second denial
		kept   int
	}{
		"another tenant too soon": {denial{spacing - 1, "b", "x", items}, atOnce},
		"another tenant":          {denial{spacing, "b", "x", items}, atOnce + 1},
		"another operation":       {denial{spacing, "a", "y", items}, atOnce + 1},
		"another limit":           {denial{spacing, "a", "x", others}, atOnce + 1},
		"a repeat":                {denial{spacing, "a", "x", items}, atOnce},
		"a late repeat":           {denial{repeat - 1, "a", "x", items}, atOnce},
		"a second later":          {denial{repeat, "a", "x", items}, atOnce + 1},
	} {
		r := newRing(t, nil)
		all := []denial{{0, "a", "x", items}}
		for i := range 2 * atOnce { // at once, as of a pipeline
			if name := fmt.Sprint("tenant ", i); placeOf(r, name, "x") != placeOf(r, "a", "x") {
				all = append(all, denial{0, name, "x", items})
			}
		}
		for _, one := range append(all, row.second) {
			r.Observe(noTrial, &limit.Request{Tenant: one.tenant, Op: one.op}, second+one.at, d, one.items)
		}
		if n := len(r.Last(3 * atOnce)); n != row.kept {
			t.Errorf("%s: %d are kept, want %d", name, n, row.kept)
		}
	}
}

// TestSharedPlace checks that a denial is no repeat of another one that has the same place among the recent
// ones.
func TestSharedPlace(t *testing.T) {
	r := newRing(t, nil)
	d, items := denied(payments)
	place := func(tenant string) uint64 { return placeOf(r, tenant, "") }
	other := ""
	for i := 0; other == ""; i++ {
		if name := fmt.Sprint("tenant ", i); place(name) == place("first") {
			other = name
		}
	}
	for i, tenant := range []string{"first", other, "first"} {
		r.Observe(noTrial, &limit.Request{Tenant: tenant}, second+int64(i)*spacing, d, items)
	}
	if got := r.Last(9); len(got) != 3 || got[1].Tenant != other {
		t.Errorf("kept %+v", got)
	}
}

// TestTrial checks that the denials of tenants on trial are marked, but not those by inline limits, and
// that the log has the mark.
func TestTrial(t *testing.T) {
	const share = limit.TrialWhole / 2
	set := new(limit.Set).Try(new(limit.Set), share)
	var lines bytes.Buffer
	r := newRing(t, slog.New(slog.NewTextHandler(&lines, nil)))
	d, items := denied(payments)
	for i := range int64(20) {
		r.Observe(set, &limit.Request{Tenant: fmt.Sprint(i)}, i*second, d, items)
		r.Observe(set, &limit.Request{Tenant: fmt.Sprint(i), Op: "inline", Inline: payments}, i*second+second/2, d, items)
	}
	marked := 0
	for _, found := range r.Last(40) {
		if want := found.Operation == "" && limit.InTrial(found.Tenant, share); found.Trial != want {
			t.Errorf("got %+v, want trial=%t", found, want)
		}
		if found.Trial {
			marked++
		}
	}
	if n := strings.Count(lines.String(), "trial=true"); marked == 0 || marked == 20 || n != marked {
		t.Errorf("%d of 20 tenants are marked, %d in the log", marked, n)
	}
}

// TestSample checks the bounds: a hundred a second, one a second of each limit, tenant and
// operation, and as many as the ring has room for.
func TestSample(t *testing.T) {
	r := newRing(t, nil)
	d, items := denied(payments)
	for i := range int64(100_000) { // for a second
		r.Observe(noTrial, &limit.Request{Tenant: "one"}, second+i*10, d, items)
	}
	if n := r.next; n != 1 {
		t.Errorf("kept %d of one tenant in a second, want 1", n)
	}
	for i := range int64(100_000) {
		r.Observe(noTrial, &limit.Request{Tenant: fmt.Sprint("tenant ", i)}, 3*second+i*10, d, items)
	}
	if n := r.next; n > 101+atOnce || n < 90+atOnce {
		t.Errorf("kept %d of many tenants in a second, want about %d", n, 100+atOnce)
	}
	for i := range int64(5 * Kept) {
		r.Observe(noTrial, &limit.Request{Tenant: fmt.Sprint("later ", i)}, (10+i)*second, d, items)
	}
	last := r.Last(10 * Kept)
	if len(last) != Kept || last[0].Tenant != fmt.Sprint("later ", 5*Kept-1) || last[Kept-1].Tenant != fmt.Sprint("later ", 4*Kept) {
		t.Errorf("kept %d, from %q to %q", len(last), last[0].Tenant, last[len(last)-1].Tenant)
	}
}

// TestFloodHidesNobody checks that a tenant which is denied all the time takes no place of others: it has one denial a
// second, and one more for each of the others whose hash has its place in recent.
func TestFloodHidesNobody(t *testing.T) {
	r := newRing(t, nil)
	d, items := denied(payments)
	for i := range int64(1_000_000) { // for ten seconds
		now := second + i*10
		r.Observe(noTrial, &limit.Request{Tenant: "flood"}, now, d, items)
		if i%150_000 == 75_000 {
			r.Observe(noTrial, &limit.Request{Tenant: fmt.Sprint("rare ", i)}, now, d, items)
		}
	}
	rare, flood := 0, 0
	for _, d := range r.Last(Kept) {
		if d.Tenant == "flood" {
			flood++
		} else {
			rare++
		}
	}
	if rare != 7 || flood < 10 || flood > 10+rare {
		t.Errorf("kept %d of 7 denials that are rare, and %d of the flood", rare, flood)
	}
}

// TestClockSetBack checks that the sample goes on after the clock was set back.
func TestClockSetBack(t *testing.T) {
	r := newRing(t, nil)
	d, items := denied(payments)
	r.Observe(noTrial, &limit.Request{Tenant: "t"}, 1000*second, d, items)
	r.Observe(noTrial, &limit.Request{Tenant: "t"}, 10*second, d, items)
	if len(r.Last(10)) != 2 {
		t.Errorf("kept %+v", r.Last(10))
	}
}

// TestAliases checks that a denial does not keep the bytes of the command.
func TestAliases(t *testing.T) {
	r := newRing(t, nil)
	d, items := denied(payments)
	words := []byte("acmeGET /")
	r.Observe(noTrial, &limit.Request{Tenant: unsafe.String(&words[0], 4), Op: unsafe.String(&words[4], 5)}, second, d, items)
	copy(words, "xxxxxxxxx")
	if got := r.Last(1)[0]; got.Tenant != "acme" || got.Operation != "GET /" {
		t.Errorf("kept %q and %q", got.Tenant, got.Operation)
	}
}

// TestConcurrent records and reads at once, for the race detector.
func TestConcurrent(t *testing.T) {
	r := newRing(t, nil)
	d, items := denied(payments)
	var all sync.WaitGroup
	for i := range int64(4) {
		all.Go(func() {
			for n := range int64(100) {
				r.Observe(noTrial, &limit.Request{Tenant: fmt.Sprint(i), Op: "x"}, (n*4+i)*second, d, items)
				r.Last(3)
			}
		})
	}
	all.Wait()
	if len(r.Last(Kept)) == 0 {
		t.Error("kept nothing")
	}
}

func BenchmarkAdmitted(b *testing.B) {
	r := New(nil, nil)
	items := []limit.Item{{Limit: payments}, {Limit: payments}}
	d := &limit.Decision{Allowed: true}
	req := &limit.Request{Tenant: "t"}
	for i := range b.N {
		r.Observe(noTrial, req, int64(i), d, items)
	}
}

func BenchmarkFlood(b *testing.B) {
	r := New(nil, nil)
	d, items := denied(payments)
	req := &limit.Request{Tenant: "t", Op: "GET /"}
	for i := range b.N {
		r.Observe(noTrial, req, int64(i), d, items) // a million a second
	}
}

// TestConcurrentRepeats: equal denials at one time are one of the sample.
func TestConcurrentRepeats(t *testing.T) {
	d, items := denied(payments)
	for range 300 {
		r := newRing(t, nil)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 50 {
					r.Observe(noTrial, &limit.Request{Tenant: "one"}, second, d, items)
				}
			})
		}
		all.Wait()
		if n := len(r.Last(9)); n != 1 {
			t.Fatalf("kept %d", n)
		}
	}
}
