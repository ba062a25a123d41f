package envoy

import (
	"math"
	"strings"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/limitgate/limitgate/backstop"
	settings "github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// plans are the limits of native domains. Windows are a year, so that none ends meanwhile.
const plans = `
version: 1
default_plan: free
plans:
  free:
    - {id: tenant, by: [tenant], rate: 5/365d, algorithm: fixed_window}
    - {id: pay, by: [tenant, op], when: {op: pay}, rate: 2/365d, algorithm: fixed_window, group: pay}
    - {id: user, by: [tenant, user], rate: 3/365d, algorithm: fixed_window, group: user}
    - {id: dear, by: [tenant], when: {op: dear}, rate: 100/365d, algorithm: fixed_window, cost: 10}
    - {id: capped, by: [tenant], when: {op: capped}, rate: 9/365d, algorithm: fixed_window, max_cost: 3, group: capped}
    - {id: banned, when: {op: never}, action: deny, group: banned}
  open: []
shared:
  - {id: ip, by: [ip], rate: 7/30d, algorithm: fixed_window, group: ip}
tenants:
  free-of-limits: {plan: open}
`

// newNative returns a service whose domain mesh is native.
func newNative(t *testing.T, behaviour Behaviour) *Service {
	t.Helper()
	return newNativeOver(t, behaviour, limiter.Options{Store: memory.New(memory.Options{})})
}

// newNativeOver does the same for a limiter with options.
func newNativeOver(t *testing.T, behaviour Behaviour, opts limiter.Options) *Service {
	t.Helper()
	set, _, err := settings.ParseLimits("limits.yaml", []byte(plans), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := limit.NewAddrHasher([]byte("0123456789abcdef0123456789abcdef"), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	opts.Addrs, opts.Timeout = addrs, time.Second
	return New(Options{Limiter: limiter.New(opts, set), MayRefund: true, Behaviour: behaviour, Native: []string{"mesh"}})
}

// TestNative checks requests one after the other.
func TestNative(t *testing.T) {
	s := newNative(t, Behaviour{})
	for i, c := range []struct {
		descriptors string
		hits        uint32
		want        string
	}{
		{"tenant=a", 0, "OK, OK 4/5"},
		{"tenant=a op=pay", 0, "OK, OK 1/2"},
		{"tenant=a op=pay,tenant=b", 2, "OVER_LIMIT, OVER_LIMIT 0/2, OK 5/5"}, // takes nothing
		{"tenant=b", 0, "OK, OK 4/5"},
		{"tenant=b,tenant=b", 0, "OK, OK 3/5, OK 2/5"},
		{"tenant=b op=never", 0, "OVER_LIMIT, OVER_LIMIT 0/0"},
		{"tenant=b op=never,tenant=c", 0, "OVER_LIMIT, OVER_LIMIT 0/0, OK 5/5"},
		{"tenant=c user=u", 0, "OK, OK 2/3"},
		{"tenant=c user=u", 9, "OVER_LIMIT, OVER_LIMIT 0/5"},
		{"op=x", 0, "OK, OK 4/5"}, // anonymous
		{"tenant=-", 0, "OK, OK 3/5"},
		{"tenant=d hits=0", 0, "OK, OK 5/5"},
		{"tenant=d hits=4", 0, "OK, OK 1/5"},
		{"tenant=d hits=40", 0, "OVER_LIMIT, OVER_LIMIT 0/5"}, // charged with what is left
		{"tenant=d hits=0", 0, "OVER_LIMIT, OVER_LIMIT 0/5"},
		{"tenant=d hits=0,tenant=e", 0, "OVER_LIMIT, OVER_LIMIT 0/5, OK 5/5"}, // a look that denies takes nothing elsewhere
		{"tenant=e", 0, "OK, OK 4/5"},
		{"tenant=d refund=2", 0, "OK, OK 2/5"},
		{"tenant=d refund=200", 0, "OK, OK 5/5"},
		{"tenant=free-of-limits", 0, "OK, OK"},
		{"tenant=free-of-limits remote_address=192.0.2.1", 0, "OK, OK 6/7"},
		{"tenant=free-of-limits ip=192.0.2.1", 6, "OK, OK 0/7"},
		{"tenant=free-of-limits ip=192.0.2.1", 0, "OVER_LIMIT, OVER_LIMIT 0/7"},
		{"tenant=free-of-limits ip=nonsense", 0, "OK, OK"},
		{"tenant=f hits=18446744073709551615", 0, "OVER_LIMIT, OVER_LIMIT 0/5"},
		{"tenant=f", 0, "OVER_LIMIT, OVER_LIMIT 0/5"},
		{"tenant=g op=dear", 0, "OK, OK 90/100"},
		{"tenant=g op=dear hits=0", 0, "OK, OK 90/100"},
		{"tenant=g op=dear,op=never", 0, "OVER_LIMIT, OK 90/100, OVER_LIMIT 0/0"},
		{"tenant=h op=capped hits=50", 0, "OVER_LIMIT, OVER_LIMIT 0/5"}, // charged with what one check may cost
		{"tenant=h op=capped hits=0", 0, "OK, OK 2/5"},
		{"tenant=h refund=0", 0, "OK, OK 2/5"},
		{"tenant=h", math.MaxUint32, "OVER_LIMIT, OVER_LIMIT 0/0"}, // more than any check costs
		{"tenant=i tenant=j op=pay op=x", 0, "OK, OK 1/2"},         // the first counts
		{"tenant=j", 0, "OK, OK 4/5"},
	} {
		if got := ask(t, s, c.descriptors, c.hits); got != c.want {
			t.Errorf("%d: %s (%d): %s, want %s", i, c.descriptors, c.hits, got, c.want)
		}
	}
}

// awayStore is a store that decides nothing.
type awayStore struct{ limiter.Store }

func (awayStore) Start(limit.DecisionTime, []limit.Item, []limit.Call, func(uint64), uint64) func() bool {
	return nil
}
func (awayStore) Take(limit.DecisionTime, []limit.Item, []limit.Call) {}
func (awayStore) Peek(limit.DecisionTime, []limit.Item, []limit.Call) {}
func (awayStore) Pause(*limit.Item) time.Duration                     { return 0 }

// TestNativeCapped: a request that the bound of all tenants together denies is over the limit, and not without
// one.
func TestNativeCapped(t *testing.T) {
	s := newNativeOver(t, Behaviour{}, limiter.Options{Store: awayStore{}, Backstop: backstop.New(backstop.Options{TotalRate: 3})})
	for i, c := range []struct {
		descriptors string
		hits        uint32
		want        string
	}{
		{"tenant=a", 4, "OVER_LIMIT, OVER_LIMIT 0/5"},
		{"tenant=a,tenant=b", 4, "OVER_LIMIT, OVER_LIMIT 0/5, OVER_LIMIT 0/5"},
		{"tenant=free-of-limits", 4, "OK, OK"},
		{"tenant=a", 3, "OK, OK 2/5"},
	} {
		if got := ask(t, s, c.descriptors, c.hits); got != c.want {
			t.Errorf("%d: %s (%d): %s, want %s", i, c.descriptors, c.hits, got, c.want)
		}
	}
}

// TestNativeStatus checks the limit in a status, and the header fields.
func TestNativeStatus(t *testing.T) {
	s := newNative(t, Behaviour{ResponseHeaders: &HeaderNames{"X-Limit", "X-Left", "X-Reset"}})
	req := &rls.RateLimitRequest{Domain: "mesh"}
	for _, text := range []string{"tenant=free-of-limits ip=192.0.2.1", "tenant=free-of-limits"} {
		req.Descriptors = append(req.Descriptors, descriptor(t, text))
	}
	resp, err := s.ShouldRateLimit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	st := resp.GetStatuses()[0]
	if l := st.GetCurrentLimit(); l.GetName() != "ip" || l.GetUnit() != rls.RateLimitResponse_RateLimit_DAY || l.GetUnitMultiplier().GetValue() != 30 ||
		st.GetDurationUntilReset().AsDuration() <= 0 || st.GetDurationUntilReset().AsDuration() > 30*24*time.Hour {
		t.Errorf("the status is %v", st)
	}
	text := ""
	for _, h := range resp.GetResponseHeadersToAdd()[:2] {
		text += h.GetKey() + "=" + h.GetValue() + " "
	}
	if text != "X-Limit=7 X-Left=6 " {
		t.Errorf("the header fields are %s", text)
	}
	for hits, want := range map[uint32]bool{6: true, 8: false} { // 8 are never admitted
		var resp *rls.RateLimitResponse
		for range 2 { // the first of 6 is admitted
			if resp, err = s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "mesh", Descriptors: req.GetDescriptors()[:1], HitsAddend: hits}); err != nil {
				t.Fatal(err)
			}
		}
		fields := resp.GetResponseHeadersToAdd()
		if last := fields[len(fields)-1]; resp.GetOverallCode() != rls.RateLimitResponse_OVER_LIMIT || (last.GetKey() == "Retry-After" && last.GetValue() != "1") != want {
			t.Errorf("%d hits: %v, %v", hits, resp.GetOverallCode(), fields)
		}
	}
}

// TestNativeRefunds checks that a service without refunds gives nothing back.
func TestNativeRefunds(t *testing.T) {
	s := newNative(t, Behaviour{})
	s.opts.MayRefund = false
	for i, want := range []string{"OK, OK 4/5", "OK, OK 3/5"} {
		if got := ask(t, s, "tenant=a", 0); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	if got := ask(t, s, "tenant=a refund=2", 0); got != "OK, OK 3/5" || s.stats.refusedRefunds.Load() != 1 {
		t.Errorf("%s, %d refused", got, s.stats.refusedRefunds.Load())
	}
}

// TestNativeBounds checks that a tenant and an op which no limit can have count as missing, and that a long value is its hash.
func TestNativeBounds(t *testing.T) {
	d := descriptor(t, "tenant="+strings.Repeat("t", 300)+" op="+strings.Repeat("o", 2000)+" Tenant=x user="+strings.Repeat("u", 300)+" a=1 a=2")
	for _, key := range strings.Split("bcdefghijklmnopqrstuvwxyz", "") {
		d.Entries = append(d.Entries, descriptor(t, key+"=1").GetEntries()...)
	}
	r := newNative(t, Behaviour{}).checkOf(d)
	if r.Tenant != anonymous || r.Op != "" || len(r.Dims) != limit.MaxDims || r.Dims[0] != (limit.Dim{Name: "user", Value: limit.FitValue(strings.Repeat("u", 300))}) || r.Dims[1] != (limit.Dim{Name: "a", Value: "1"}) {
		t.Errorf("the check is %+v", r)
	}
}
