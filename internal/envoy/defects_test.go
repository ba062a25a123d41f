package envoy

import (
	"math"
	"strings"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// withRules returns a service with the rules of a file, whose limiter caches denials.
func withRules(t *testing.T, behaviour Behaviour, file string) *Service {
	t.Helper()
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second, DenyCacheSize: 100},
		storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/366d"}))
	s := New(Options{Limiter: l, MayRefund: true, Behaviour: behaviour})
	s.SetConfig(rulesOf(t, file))
	return s
}

func rulesOf(t *testing.T, file string) *rlsconfig.Config {
	t.Helper()
	c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "rules.yaml", Content: []byte(file)}}, rlsconfig.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// sequence sends requests one after the other, and compares the responses.
func sequence(t *testing.T, s *Service, rows ...[2]string) {
	t.Helper()
	for i, row := range rows {
		if got := ask(t, s, row[0], 0); got != row[1] {
			t.Errorf("%d: %s: %s, want %s", i, row[0], got, row[1])
		}
	}
}

// TestKnownDefects has what goes wrong in envoyproxy/ratelimit, by the reports of its users, one by one.
func TestKnownDefects(t *testing.T) {
	t.Run("a denied request takes nothing of its other descriptors", func(t *testing.T) {
		s := withRules(t, Behaviour{}, rules)
		sequence(t, s, [2]string{"zero=1,a=1", "OVER_LIMIT, OVER_LIMIT 0/0, OK 5/5"}, [2]string{"a=1", "OK, OK 4/5"})
	})
	t.Run("a full rule in shadow mode leaves the others in force", func(t *testing.T) {
		s := withRules(t, Behaviour{}, rules)
		sequence(t, s, [2]string{"dark=1 hits=2", "OK, OK 0/2"}, [2]string{"dark=1,b=1", "OK, OK 0/2, OK 2/3"}, [2]string{"dark=1,b=1", "OK, OK 0/2, OK 1/3"},
			[2]string{"dark=1,b=1", "OK, OK 0/2, OK 0/3"}, [2]string{"dark=1,b=1", "OVER_LIMIT, OK 0/2, OVER_LIMIT 0/3"})
	})
	t.Run("quotas are counted beside a full one", func(t *testing.T) {
		s := withRules(t, Behaviour{}, rules)
		sequence(t, s, [2]string{"q1=1,q2=1", "OK, OK 1/2, OK 3/4"}, [2]string{"q1=1,q2=1", "OK, OK 0/2, OK 2/4"}, [2]string{"q1=1,q2=1", "OK, OVER_LIMIT 0/2, OK 1/4"},
			[2]string{"q1=1,q2=1", "OK, OVER_LIMIT 0/2, OK 0/4"}, [2]string{"q1=1,q2=1", "OVER_LIMIT, OVER_LIMIT 0/2, OVER_LIMIT 0/4"})
	})
	t.Run("a raised limit helps at once", func(t *testing.T) {
		s := withRules(t, Behaviour{}, rules)
		for range 20 {
			ask(t, s, "b=1", 0)
		}
		s.SetConfig(rulesOf(t, strings.Replace(rules, "requests_per_unit: 3}", "requests_per_unit: 6}", 1)))
		sequence(t, s, [2]string{"b=1", "OK, OK 2/6"})
		for range 5 {
			ask(t, s, "a=1 limit=2/6", 0)
		}
		sequence(t, s, [2]string{"a=1 limit=2/6", "OVER_LIMIT, OVER_LIMIT 0/2"}, [2]string{"a=1 limit=4/6", "OK, OK 1/4"})
	})
	t.Run("a unit that does not exist is no panic", func(t *testing.T) {
		s := withRules(t, Behaviour{}, rules)
		sequence(t, s, [2]string{"a=1 limit=1/0", "OK, OK 4/5"}, [2]string{"a=1 limit=1/99", "OK, OK 3/5"}, [2]string{"a=1 limit=1/-1", "OK, OK 2/5"})
	})
	t.Run("no number of hits overflows a counter", func(t *testing.T) {
		s := withRules(t, Behaviour{}, rules)
		sequence(t, s, [2]string{"a=1 hits=18446744073709551615", "OVER_LIMIT, OVER_LIMIT 0/5"}, [2]string{"a=1", "OVER_LIMIT, OVER_LIMIT 0/5"},
			[2]string{"a=1 hits=9223372036854775808", "OVER_LIMIT, OVER_LIMIT 0/5"}, [2]string{"a=1", "OVER_LIMIT, OVER_LIMIT 0/5"}, [2]string{"a=2", "OK, OK 4/5"})
		if got := ask(t, s, "a=2", math.MaxUint32); got != "OVER_LIMIT, OVER_LIMIT 0/5" {
			t.Error(got)
		}
	})
	t.Run("names do not collide", func(t *testing.T) {
		s := withRules(t, Behaviour{}, `
domain: mesh
descriptors:
  - {key: ab, value: c_d, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: col, value: "*", rate_limit: {unit: year, requests_per_unit: 1}}
  - key: one
    rate_limit: {unit: year, requests_per_unit: 3}
    descriptors: [{key: two, rate_limit: {unit: year, requests_per_unit: 5}}]
`)
		sequence(t, s, [2]string{"ab_c=d", "OK, OK"}, [2]string{"col_umn=x", "OK, OK"}, [2]string{"one=v_two_w", "OK, OK 2/3"}, [2]string{"one=v two=w", "OK, OK 4/5"})
	})
	t.Run("windows of different lengths do not share a counter", func(t *testing.T) {
		s := withRules(t, Behaviour{}, rules)
		sequence(t, s, [2]string{"a=1 limit=5/6", "OK, OK 4/5"}, [2]string{"a=1 limit=5/4*30", "OK, OK 4/5"}, [2]string{"a=1 limit=5/6,a=1 limit=5/4*30", "OK, OK 3/5, OK 3/5"})
	})
	t.Run("rules that replace each other are a mistake", func(t *testing.T) {
		_, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "f", Content: []byte(`
domain: mesh
descriptors:
  - {key: a, rate_limit: {name: x, replaces: [{name: y}], unit: year, requests_per_unit: 1}}
  - {key: b, rate_limit: {name: y, replaces: [{name: x}], unit: year, requests_per_unit: 1}}
`)}}, rlsconfig.Options{})
		if problems.Err() == nil {
			t.Error("no mistake")
		}
	})
}

// TestKnownDefectsOfAnswers has those of metadata, header fields and metrics.
func TestKnownDefectsOfAnswers(t *testing.T) {
	const file = `
domain: mesh
descriptors:
  - {key: a, detailed_metric: true, metadata: {team: edge}, rate_limit: {unit: year, requests_per_unit: 5}}
  - {key: dark, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
`
	s := withRules(t, Behaviour{Metadata: true, ResponseHeaders: &HeaderNames{"L", "R", "S"}}, file)
	req := &rls.RateLimitRequest{Domain: "mesh"}
	for _, text := range []string{"a=1", "dark=1 hits=1", "dark=1 hits=1"} {
		req.Descriptors = append(req.Descriptors, descriptor(t, text))
	}
	resp, err := s.ShouldRateLimit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if team := resp.GetDynamicMetadata().GetFields()["metadata"].GetStructValue().GetFields()["team"].GetStringValue(); team != "edge" {
		t.Errorf("the metadata is %v", resp.GetDynamicMetadata())
	}
	if h := resp.GetResponseHeadersToAdd(); len(h) != 3 || h[0].GetValue() != "5" || h[1].GetValue() != "4" {
		t.Errorf("the header fields are %v: those of a limit in shadow mode are not for clients", h)
	}
	before := testutil.CollectAndCount(s.Stats()) // with the value of detailed_metric
	for _, domain := range []string{"unknown", "mesh"} {
		for range 50 {
			if _, err := s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: domain, Descriptors: req.GetDescriptors()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := testutil.CollectAndCount(s.Stats()); after != before {
		t.Errorf("%d series became %d: requests make metrics", before, after)
	}
}
