package bench

import (
	"context"
	"fmt"
	"strconv"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// The limits of Envoy's rate limit service: fixed windows of a day that no run uses up.
const (
	rlsDomain = "bench"
	rlsUnits  = 1_000_000_000
)

// rlsLimits is a file of envoyproxy/ratelimit. Each descriptor of rlsRequests meets one of its rules.
var rlsLimits = fmt.Sprintf(`domain: %s
descriptors:
  - key: tenant
    rate_limit: {unit: day, requests_per_unit: %[2]d}
    descriptors:
      - key: route
        rate_limit: {unit: day, requests_per_unit: %[2]d}
      - key: user
        rate_limit: {unit: day, requests_per_unit: %[2]d}
`, rlsDomain, rlsUnits)

// rlsRequests returns a request for each tenant: with its descriptor alone, or with three.
func rlsRequests(descriptors int) []*rls.RateLimitRequest {
	requests := make([]*rls.RateLimitRequest, tenants)
	for i := range requests {
		tenant := &ratelimit.RateLimitDescriptor_Entry{Key: "tenant", Value: "t" + strconv.Itoa(i)}
		all := [][]*ratelimit.RateLimitDescriptor_Entry{
			{tenant},
			{tenant, {Key: "route", Value: operation}},
			{tenant, {Key: "user", Value: "u" + strconv.Itoa(i)}},
		}
		requests[i] = &rls.RateLimitRequest{Domain: rlsDomain}
		for _, entries := range all[:descriptors] {
			requests[i].Descriptors = append(requests[i].Descriptors, &ratelimit.RateLimitDescriptor{Entries: entries})
		}
	}
	return requests
}

// windowLimits is a limits file with as many limits of fixed windows for each check.
func windowLimits(n int) string {
	text := "version: 1\ndefault_plan: bench\nplans:\n  bench:\n"
	for i, limit := range []string{"by: [tenant], rate: %d/24h", "by: [tenant, op], rate: %d/24h", "by: [tenant, op], group: half, rate: %d/12h"}[:n] {
		text += fmt.Sprintf("    - {id: l%d, "+limit+", algorithm: fixed_window, on_error: open}\n", i, rlsUnits)
	}
	return text
}

// rlsCases run only when they are named, for their yardstick is one that the user has built.
func rlsCases() []Case {
	const about = "Envoy's rate limit service on one Redis: %s in each request, %d callers on one connection of gRPC, and fixed windows " +
		"of a day that admit all. A decision is a request, with a deadline, as Envoy sends it. With `--envoy-ratelimit FILE` the other side is " +
		"envoyproxy/ratelimit, with the same files, Redis and client; it records no metrics, and its variables in the environment apply. Without, the other side is " +
		"`RL.CHECK` by a lighter client, with as many limits and a connection for each caller."
	one := func(name string, descriptors, callers int) Case {
		words := map[int]string{1: "one descriptor", 3: "three descriptors"}[descriptors]
		return Case{
			Name: name, Title: fmt.Sprintf("Envoy's service, %s, %d callers", words, callers), About: fmt.Sprintf(about, words, callers), Aside: true,
			run: func(ctx context.Context, l *lab) (*Result, error) {
				load := rlsLoad{descriptors: descriptors, callers: callers}
				p := &pair{subject: rlsGate(load), yardstick: rlsYardstick(l, load), figures: []want{
					proxyMicros(nil), storeMicros(nil), proxyCPU(nil), storeCPU(nil), serverCPU(nil), throughput(nil), p99Ratio(nil),
				}}
				return p.measure(ctx, l)
			},
		}
	}
	return []Case{one("rls-1", 1, 16), one("rls-3", 3, 16), one("rls-1-256", 1, 256), one("rls-3-256", 3, 256)}
}

// rlsYardstick is envoyproxy/ratelimit if there is one, and else RL.CHECK.
func rlsYardstick(l *lab, load rlsLoad) side {
	if l.envoyRatelimit != "" {
		return envoyRatelimit(load)
	}
	return gate{name: "limitgate, RL.CHECK", kind: onRedis, limits: windowLimits(load.descriptors), op: operation, traffic: uniform(load.callers, 1)}.side()
}
