package integration

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

var agreeing = flag.Int("agreeing", 40_000, "decisions of each TestMetricsAgree")

// TestMetricsAgree: the counters of decisions equal what clients saw, by limit, verdict and source,
// in memory and with a Redis, from the fast path, the deny cache and leases alike.
func TestMetricsAgree(t *testing.T) {
	limits := writeLimits(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: tenant, by: [tenant], rate: 50/s}
    - {id: op, by: [tenant, op], rate: 20/s, when: {op: "GET*"}}
    - {id: dark, by: [tenant, ip], rate: 1/s, mode: shadow}
  leased:
    - {id: leased, by: [tenant], rate: 5000/s, lease: {size: 20}}
  fast:
    - {id: fast, by: [tenant], rate: 100/s}
tenants:
  t0: {plan: leased}
  t1: {plan: fast}
`)
	for name, flags := range map[string][]string{"memory": nil, "redis": {"--redis", redistest.Start(t).Addr}} {
		t.Run(name, func(t *testing.T) {
			p := serve(t, limits, flags...)
			total := *agreeing
			seen := countRandomChecks(t, p.client(), total)
			page, counted := p.get("/metrics"), map[string]int{}
			for _, m := range regexp.MustCompile(`(?m)^limitgate_decisions_total\{limit="(.*)",mode="enforce",source="(.*)",verdict="(.*)"\} (.*)$`).FindAllStringSubmatch(page, -1) {
				n, _ := strconv.ParseFloat(m[4], 64)
				counted[fmt.Sprint(m[1], " ", m[3], " ", m[2])] += int(n)
			}
			if fmt.Sprint(counted) != fmt.Sprint(seen) {
				t.Errorf("/metrics has %v\nclients saw %v", counted, seen)
			}
			timed := 0
			for _, m := range regexp.MustCompile(`(?m)^limitgate_decision_seconds_count\{.*\} (.*)$`).FindAllStringSubmatch(page, -1) {
				n, _ := strconv.Atoi(m[1])
				timed += n
			}
			if timed < total*9/10 || timed > total {
				t.Errorf("%d decisions were timed, of %d", timed, total)
			}
		})
	}
}

// countRandomChecks sends random checks in random pipelines, and returns how many answers there
// were by limit, verdict and source.
func countRandomChecks(t *testing.T, c *redis.Client, total int) map[string]int {
	t.Helper()
	random, seen := rand.New(rand.NewPCG(1, 2)), map[string]int{}
	for total > 0 {
		n := min(1+random.IntN(100), total)
		total -= n
		replies, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for range n {
				op := []string{"-", "GET /a", "GET /b", "POST /a"}[random.IntN(4)]
				pipe.Do(t.Context(), "RL.CHECK", fmt.Sprint("t", random.IntN(6)), op, fmt.Sprint("203.0.113.", random.IntN(9)), 1+random.IntN(3))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range replies {
			fields := r.(*redis.Cmd).Val().([]any)
			verdict := map[int64]string{0: "deny", 1: "admit"}[fields[0].(int64)]
			seen[fmt.Sprint(fields[5], " ", verdict, " ", fields[6])]++
		}
	}
	return seen
}
