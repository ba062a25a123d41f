package denials

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
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
	if n := r.next; n > 102 || n < 90 {
		t.Errorf("kept %d of many tenants in a second, want about 101", n)
	}
	for i := range int64(5 * Kept) {
		r.Observe(noTrial, &limit.Request{Tenant: fmt.Sprint("later ", i)}, (10+i)*second, d, items)
	}
	last := r.Last(10 * Kept)
	if len(last) != Kept || last[0].Tenant != fmt.Sprint("later ", 5*Kept-1) || last[Kept-1].Tenant != fmt.Sprint("later ", 4*Kept) {
		t.Errorf("kept %d, from %q to %q", len(last), last[0].Tenant, last[len(last)-1].Tenant)
	}
}

// TestFloodHidesNobody checks that a tenant which is denied all the time takes no place of others.
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
	if rare != 7 || flood != 10 {
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
