package envoy

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// parsed returns a configuration with a limit of a key, and its extensions.
func parsed(t *testing.T, limit int, extensions string) *rlsconfig.Config {
	t.Helper()
	opts, err := rlsconfig.Options{}.WithExtensions("x.yaml", []byte("version: 1\ndomains: {mesh: {"+extensions+"}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "rules.yaml", Content: fmt.Appendf(nil, "domain: mesh\ndescriptors: [{key: a, detailed_metric: true, rate_limit: {unit: year, requests_per_unit: %d}}]\n", limit)}}, opts)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// cached returns a service over a store in memory with a cache of denials.
func cached(t *testing.T) *Service {
	t.Helper()
	return New(Options{MayRefund: true, Limiter: limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Backstop: backstop.New(backstop.Options{}), Timeout: time.Second, DenyCacheSize: 100},
		storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/366d"}))})
}

// TestRaisedLimit: a limit that is raised helps at once, and one that is lowered denies at once, whatever the
// algorithm is and although denials are cached.
func TestRaisedLimit(t *testing.T) {
	for _, extensions := range []string{"", "rules: {a: {algorithm: sliding_window}}", "rules: {a: {lease: auto}}", "rules: {a: {also: [{id: x, rate: 100/300d}]}}", "tenant_key: a"} {
		s := cached(t)
		for i, step := range []struct {
			limit int
			want  string
		}{{2, "OK, OK 1/2"}, {2, "OK, OK 0/2"}, {2, "OVER_LIMIT, OVER_LIMIT 0/2"}, {2, "OVER_LIMIT, OVER_LIMIT 0/2"}, {4, "OK, OK 1/4"}, {3, "OVER_LIMIT, OVER_LIMIT 0/3"}, {5, "OK, OK 1/5"}} {
			s.SetConfig(parsed(t, step.limit, extensions))
			if got := ask(t, s, "a=1", 0); got != step.want {
				t.Errorf("%s: step %d: %s, want %s", extensions, i, got, step.want)
			}
		}
	}
}

// TestReloadStorm replaces the configuration and its extensions all the time, beside requests, explanations and
// scrapes. No request fails, and not more are admitted than the limit that is always the same holds.
func TestReloadStorm(t *testing.T) {
	s := cached(t)
	var configs []*rlsconfig.Config
	for _, extensions := range []string{"", "rules: {a: {also: [{id: x, rate: 50/300d}]}}", "on_denied: nothing", "rules: {a: {on_error: closed}}"} {
		configs = append(configs, parsed(t, 20, extensions))
	}
	s.SetConfig(configs[0])
	done := make(chan struct{})
	var storm, requests sync.WaitGroup
	storm.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				s.SetConfig(configs[i%len(configs)])
				if _, err := testutil.CollectAndLint(s.Stats(), "none"); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var mu sync.Mutex
	admitted := map[string]int{}
	for range 4 {
		requests.Go(func() {
			for i := range 400 {
				text := fmt.Sprint("a=", i%10)
				if got := ask(t, s, text, 0); strings.HasPrefix(got, "OK") {
					mu.Lock()
					admitted[text]++
					mu.Unlock()
				}
				if _, err := s.explain(&rls.RateLimitRequest{Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(t, text)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	requests.Wait()
	close(done)
	storm.Wait()
	for text, n := range admitted {
		if n != 20 {
			t.Errorf("%s: %d requests were admitted", text, n)
		}
	}
	if s.stats.valued > maxValued || s.inProgress.Load() != 0 {
		t.Errorf("%d values, %d descriptors in progress", s.stats.valued, s.inProgress.Load())
	}
}
