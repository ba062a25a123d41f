package envoy

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// rules are those of the tests. Windows are a year, so that none ends meanwhile.
const rules = `
domain: mesh
descriptors:
  - key: a
    rate_limit: {unit: year, requests_per_unit: 5, name: five}
  - key: b
    rate_limit: {unit: year, requests_per_unit: 3}
  - key: dark
    shadow_mode: true
    rate_limit: {unit: year, requests_per_unit: 2}
  - key: q1
    quota_mode: true
    rate_limit: {unit: year, requests_per_unit: 2}
  - key: q2
    quota_mode: true
    rate_limit: {unit: year, requests_per_unit: 4}
  - key: zero
    rate_limit: {unit: year, requests_per_unit: 0}
  - key: free
    rate_limit: {unlimited: true}
  - key: vip
    rate_limit: {unit: year, requests_per_unit: 100, replaces: [{name: five}]}
  - key: exempt
  - key: remote_address
    rate_limit: {unit: year, requests_per_unit: 3}
`

// newService returns a service over a store in memory, with the rules.
func newService(t testing.TB, behaviour Behaviour) *Service {
	t.Helper()
	c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "rules.yaml", Content: []byte(rules)}}, rlsconfig.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second}, storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/366d"}))
	s := New(Options{
		Limiter: l, MayRefund: true, Behaviour: behaviour, Native: []string{"plans"},
		HashAddr: func(dst []byte, value string) []byte { return append(dst, "h"+strconv.Itoa(len(value))...) },
	})
	s.SetConfig(c)
	return s
}

// descriptor makes a descriptor of words: KEY=VALUE entries, and then hits=N, refund=N or
// limit=N/UNIT*MULTIPLIER.
func descriptor(t testing.TB, words string) *ratelimit.RateLimitDescriptor {
	t.Helper()
	d := &ratelimit.RateLimitDescriptor{}
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "hits", "refund":
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(n), key == "refund"
		case "limit":
			count, unit, _ := strings.Cut(value, "/")
			n, err := strconv.ParseUint(count, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			unit, times, many := strings.Cut(unit, "*")
			u, _ := strconv.Atoi(unit)
			d.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(n), Unit: typev3.RateLimitUnit(u)}
			if many {
				m, _ := strconv.ParseUint(times, 10, 32)
				d.Limit.UnitMultiplier = wrapperspb.UInt32(uint32(m))
			}
		default:
			d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
	}
	return d
}

// request makes a request to a domain, whose descriptors are separated by commas.
func request(t testing.TB, domain, descriptors string, hits uint32) *rls.RateLimitRequest {
	t.Helper()
	req := &rls.RateLimitRequest{Domain: domain, HitsAddend: hits}
	for text := range strings.SplitSeq(descriptors, ",") {
		req.Descriptors = append(req.Descriptors, descriptor(t, text))
	}
	return req
}

// ask sends a request whose descriptors are separated by commas, and describes the response.
func ask(t testing.TB, s *Service, descriptors string, hits uint32) string {
	t.Helper()
	resp, err := s.ShouldRateLimit(context.Background(), request(t, "mesh", descriptors, hits))
	if err != nil {
		t.Fatal(err)
	}
	return describeResponse(resp)
}

// describeResponse describes a response: its code, and those of its statuses with what is left.
func describeResponse(resp *rls.RateLimitResponse) string {
	all := []string{resp.GetOverallCode().String()}
	for _, st := range resp.GetStatuses() {
		text := st.GetCode().String()
		if l := st.GetCurrentLimit(); l != nil {
			text += fmt.Sprintf(" %d/%d", st.GetLimitRemaining(), l.GetRequestsPerUnit())
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestDecisions checks requests one after the other.
func TestDecisions(t *testing.T) {
	s := newService(t, Behaviour{})
	for i, c := range []struct {
		descriptors string
		hits        uint32
		want        string
	}{
		{"nothing=x", 0, "OK, OK"},
		{"exempt=x", 0, "OK, OK"},
		{"a=1 b=1", 0, "OK, OK"}, // deeper than the rule
		{"free=x", 0, "OK, OK"},
		{"a=1,b=1", 0, "OK, OK 4/5, OK 2/3"},
		{"a=1,b=1", 3, "OVER_LIMIT, OK 4/5, OVER_LIMIT 0/3"}, // takes nothing
		{"a=1", 0, "OK, OK 3/5"},
		{"b=1", 2, "OK, OK 0/3"},
		{"a=1,b=1", 0, "OVER_LIMIT, OK 3/5, OVER_LIMIT 0/3"},
		{"a=1,zero=1", 0, "OVER_LIMIT, OK 3/5, OVER_LIMIT 0/0"},
		{"a=1,dark=1", 2, "OK, OK 1/5, OK 0/2"},
		{"a=2,dark=1", 0, "OK, OK 4/5, OK 0/2"}, // a shadow denies nothing
		{"a=3 hits=0", 0, "OK, OK 5/5"},
		{"a=3 hits=5", 0, "OK, OK 0/5"},
		{"a=3 hits=0", 0, "OVER_LIMIT, OVER_LIMIT 0/5"},
		{"a=3 hits=0,b=3", 0, "OVER_LIMIT, OVER_LIMIT 0/5, OK 3/3"}, // a look that denies takes nothing elsewhere
		{"b=3", 0, "OK, OK 2/3"},
		{"a=4 hits=4", 0, "OK, OK 1/5"},
		{"a=4 hits=400", 0, "OVER_LIMIT, OVER_LIMIT 0/5"}, // charged all the same
		{"a=4", 0, "OVER_LIMIT, OVER_LIMIT 0/5"},
		{"a=5 hits=18446744073709551615,b=5", 0, "OVER_LIMIT, OVER_LIMIT 0/5, OK 3/3"},
		{"a=5 hits=0", 0, "OVER_LIMIT, OVER_LIMIT 0/5"},
		{"a=5 refund=3", 0, "OK, OK 3/5"},
		{"a=5 refund=300", 0, "OK, OK 5/5"},
		{"a=6,a=6", 0, "OK, OK 4/5, OK 3/5"}, // twice the same
		{"vip=1,a=4", 0, "OK, OK 99/100, OK"},
		{"vip=1 limit=7/6,a=4", 0, "OVER_LIMIT, OK 7/7, OVER_LIMIT 0/5"}, // an override replaces nothing
		{"a=7 limit=2/6", 0, "OK, OK 1/2"},
		{"a=7 limit=2/6", 0, "OK, OK 0/2"},
		{"a=7 limit=2/6", 0, "OVER_LIMIT, OVER_LIMIT 0/2"},
		{"a=7 limit=9/6", 0, "OK, OK 6/9"}, // a new number keeps what is used
		{"a=8 limit=9/0", 0, "OK, OK 4/5"}, // no such unit
		{"a=8 limit=9/99", 0, "OK, OK 3/5"},
		{"a=8 limit=9/6*0", 0, "OK, OK 2/5"},
		{"a=8 limit=9/6*4000000000", 0, "OK, OK 1/5"},
		{"a=8 limit=9/4*30", 0, "OK, OK 8/9"},
		{"unknown=8 limit=1/6", 0, "OK, OK 0/1"},
		{"unknown=8 limit=0/6", 0, "OVER_LIMIT, OVER_LIMIT 0/0"},
		{"q1=1,q2=1", 0, "OK, OK 1/2, OK 3/4"},
		{"q1=1,q2=1", 2, "OK, OVER_LIMIT 0/2, OK 1/4"}, // those that admit are charged
		{"q1=1,q2=1", 2, "OVER_LIMIT, OVER_LIMIT 0/2, OVER_LIMIT 0/4"},
		{"q1=1,q2=1,a=9", 2, "OVER_LIMIT, OVER_LIMIT 0/2, OVER_LIMIT 0/4, OK 5/5"},
		{"a=9", 0, "OK, OK 4/5"},
	} {
		if got := ask(t, s, c.descriptors, c.hits); got != c.want {
			t.Errorf("%d: %s (%d): %s, want %s", i, c.descriptors, c.hits, got, c.want)
		}
	}
}

// TestCachedDenial checks that a denial of the deny cache, which asks nothing about other descriptors, says
// nothing wrong about them.
func TestCachedDenial(t *testing.T) {
	s := newService(t, Behaviour{NearLimit: 0.8})
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second, DenyCacheSize: 100}, s.opts.Limiter.Limits())
	s.opts.Limiter = l
	for i, want := range []string{"OK, OK 4/5, OK 2/3", "OK, OK 3/5, OK 1/3", "OK, OK 2/5, OK 0/3", "OVER_LIMIT, OK 2/5, OVER_LIMIT 0/3", "OVER_LIMIT, OK 5/5, OVER_LIMIT 0/3"} {
		if got := ask(t, s, "a=1,b=1", 0); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	for key, st := range s.stats.rules {
		if key.key1 == "a" && (st.near.Load() != 0 || st.total.Load() != 5) {
			t.Errorf("%d hits of %d are near the limit", st.near.Load(), st.total.Load())
		}
	}
}

// TestShadow checks that all rules in shadow mode admit, count, and say the truth.
func TestShadow(t *testing.T) {
	s := newService(t, Behaviour{Shadow: true})
	for i, want := range []string{"OK, OK 2/5, OK 0/3", "OK, OVER_LIMIT 0/5, OVER_LIMIT 0/3"} {
		if got := ask(t, s, "a=1,b=1", 3); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}

// TestQuota checks that all rules as quotas deny only together.
func TestQuota(t *testing.T) {
	s := newService(t, Behaviour{Quota: true})
	for i, want := range []string{"OK, OK 3/5, OK 1/3", "OK, OK 1/5, OVER_LIMIT 0/3", "OVER_LIMIT, OVER_LIMIT 0/5, OVER_LIMIT 0/3"} {
		if got := ask(t, s, "a=1,b=1", 2); got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}

// TestErrors checks the texts that operators know, and the bound.
func TestErrors(t *testing.T) {
	s := newService(t, Behaviour{})
	for want, req := range map[string]*rls.RateLimitRequest{
		"Unknown: rate limit domain must not be empty":           {Descriptors: make([]*ratelimit.RateLimitDescriptor, 1)},
		"Unknown: rate limit descriptor list must not be empty":  {Domain: "mesh"},
		"InvalidArgument: a request has at most 256 descriptors": {Domain: "mesh", Descriptors: make([]*ratelimit.RateLimitDescriptor, 257)},
		"InvalidArgument: the descriptors of a request have at most 4096 entries": {Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{
			{Entries: make([]*ratelimit.RateLimitDescriptor_Entry, 4000)}, {Entries: make([]*ratelimit.RateLimitDescriptor_Entry, 97)},
		}},
		"OK: ": {Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{nil, {}, {Entries: []*ratelimit.RateLimitDescriptor_Entry{nil}}}},
	} {
		_, err := s.ShouldRateLimit(t.Context(), req)
		if got := status.Code(err).String() + ": " + status.Convert(err).Message(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if resp, err := s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "other", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(t, "a=1 limit=0/6")}}); err != nil || resp.GetOverallCode() != rls.RateLimitResponse_OK {
		t.Errorf("an unknown domain: %v, %v", resp, err)
	}
}

// TestReloadMeanwhile replaces the configuration while a request is bound to limits.
func TestReloadMeanwhile(t *testing.T) {
	s := newService(t, Behaviour{})
	old := s.config.Load().rules
	s.opts.HashAddr = func(dst []byte, _ string) []byte {
		s.SetConfig(&rlsconfig.Config{})
		return append(dst, 'h')
	}
	if got, want := ask(t, s, "remote_address=192.0.2.1 limit=2/6,b=1", 0), "OK, OK 1/2, OK 2/3"; got != want {
		t.Errorf("the request: %s, want %s", got, want)
	}
	if got := ask(t, s, "b=1", 0); got != "OK, OK" {
		t.Errorf("the next one: %s", got)
	}
	s.SetConfig(old)
	if got, want := ask(t, s, "b=1", 0), "OK, OK 1/3"; got != want {
		t.Errorf("with the rules again: %s, want %s", got, want)
	}
}
