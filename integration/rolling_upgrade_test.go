package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// rollingLimits add fixed buckets of each algorithm, which share one key of a tenant, to
// those of exactLimits. Requests of an op meet its limit, and all that have no condition.
const rollingLimits = exactLimits + `
    - {id: field, by: [tenant], when: {op: field}, rate: 1/h, burst: 1000}
    - {id: field-sliding, by: [tenant], when: {op: field-sliding}, rate: 1000/366d, algorithm: sliding_window}
    - {id: field-fixed, by: [tenant], when: {op: field-fixed}, rate: 1000/366d, algorithm: fixed_window}
    - {id: total, group: total, by: [tenant], rate: 1/h, burst: 100000}
    - {id: large, group: large, by: [tenant], rate: 1099511627776/366d}
`

var rollingOps = []string{"bucket", "sliding", "fixed", "calendar", "field", "field-sliding", "field-fixed"}

// TestRollingUpgrade: this release and the one before, which write different formats, share
// a store, and admit exactly N, whichever came first. Reservations of one are settled by the
// other, and so are resets.
func TestRollingUpgrade(t *testing.T) {
	c := redistest.SharedCluster(t)
	limits := writeLimits(t, rollingLimits)
	flags := append(exact, "--redis", strings.Join(c.Addrs(), ","))
	before, now := serveBinary(t, binaries.previous, limits, flags...), serveBinary(t, binaries.release, limits, flags...)
	for _, direction := range []struct {
		tenant     string
		first, two *proxy
	}{{"upgrade", before, now}, {"rollback", now, before}} {
		t.Run(direction.tenant, func(t *testing.T) {
			rolling(t, direction.tenant, direction.first, direction.two)
			key := limit.TenantKey(direction.tenant)
			for _, n := range c.Masters(t) {
				client := redis.NewClient(&redis.Options{Addr: n.Addr})
				if kind := client.Type(t.Context(), key).Val(); kind == "hash" {
					t.Errorf("the tenant's buckets are a %s after this release wrote them", kind)
				}
				_ = client.Close()
			}
		})
	}
	redistest.AssertAllKeysExpire(t, c.Masters(t)...)
}

func rolling(t *testing.T, tenant string, first, second *proxy) {
	t.Helper()
	one, two := first.client(), second.client()
	total := int64(0)
	for _, op := range rollingOps {
		alone := hammer(t, []*proxy{first}, tenant, op, 200)
		mixed := hammer(t, []*proxy{first, second}, tenant, op, 400)
		after := hammer(t, []*proxy{second, first}, tenant, op, 1000)
		if alone+mixed+after != 1000 {
			t.Errorf("%s: admitted %d by the first release, %d by both and %d after, want 1000 in all", op, alone, mixed, after)
		}
		total += alone + mixed + after
	}
	left := func(c *redis.Client, op string) int64 {
		v, err := asVerdict(c.Do(t.Context(), "RL.PEEK", tenant, op, "-", 1))
		if err != nil || v.source != "store" {
			t.Fatalf("peek: %+v, %v", v, err)
		}
		return v.left
	}
	if a, b := left(one, "-"), left(two, "-"); a != 100_000-total-1 || a != b {
		t.Errorf("%d and %d units of 100,000 are left after %d and one more", a, b, total)
	}
	for i, pair := range [][2]*redis.Client{{one, two}, {two, one}} {
		reserve := func() string {
			f, err := pair[0].Do(t.Context(), "RL.RESERVE", tenant, "-", "-", 10).Slice()
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(f[7])
		}
		for _, settle := range []struct {
			words []any
			used  int64
		}{{[]any{"RL.COMMIT", reserve(), 4}, 4}, {[]any{"RL.COMMIT", reserve(), 15}, 15}, {[]any{"RL.CANCEL", reserve()}, 0}} {
			before := left(pair[1], "-")
			if err := pair[1].Do(t.Context(), settle.words...).Err(); err != nil {
				t.Errorf("direction %d: %v: %v", i, settle.words, err)
			}
			if got := left(pair[0], "-") - before; got != 10-settle.used {
				t.Errorf("direction %d: %v returned %d units, want %d", i, settle.words[0], got, 10-settle.used)
			}
		}
		if n, err := pair[1].Do(t.Context(), "RL.RESET", tenant, "field").Int(); err != nil || n != min(1, 1-i) {
			t.Errorf("direction %d: a reset removed %d buckets: %v", i, n, err)
		}
		// The other proxy may have cached that the bucket is empty.
		v, err := asVerdict(pair[1].Do(t.Context(), "RL.PEEK", tenant, "field", "-", 1000))
		if err != nil || !v.allowed || v.source != "store" {
			t.Errorf("direction %d: the bucket is not full after a reset: %+v, %v", i, v, err)
		}
	}
}
