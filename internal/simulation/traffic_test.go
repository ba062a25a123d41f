package simulation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

const (
	// hurt is the number of the shard that breaks, if only one does. Every proxy sends it
	// a request once in pace, plus or minus a half of that: often enough that breakers
	// notice. The requests to the other shards are spread over the proxies.
	hurt = 0
	pace = 62_500 * time.Microsecond
)

// plans are the limits of the fleet. Bursts are so large that each of 500 proxies has a
// share that contains a request, and some leased units.
const plans = `version: 1
default_plan: wide
plans:
  wide:
    - {id: wide, by: [tenant], rate: 100000/s}
  tight-hurt:
    - {id: tight-hurt, by: [tenant], rate: 1600/s}
  tight:
    - {id: tight, by: [tenant], rate: 20/s, burst: 2000}
  leased:
    - {id: leased, by: [tenant], rate: 800/s, burst: 20000, lease: {size: 20, ttl: 2s}}
tenants:
`

// settle creates the tenants, some for each shard, and loads their limits.
func (f *fleet) settle(tb testing.TB) {
	tb.Helper()
	text := strings.Builder{}
	text.WriteString(plans)
	name := 0
	add := func(shard int, k kind, plan string, rate float64) {
		for ; ; name++ {
			t := fmt.Sprint("tenant-", name)
			if shardOfSlot(limit.HashSlot([]byte(limit.TenantKey(t)))) == shard {
				f.tenants = append(f.tenants, &tenant{name: t, kind: k, shard: shard, rate: rate})
				fmt.Fprintf(&text, "  %s: {plan: %s}\n", t, plan)
				name++
				return
			}
		}
	}
	// Those of the hurt shard come first, see steady: 16 requests a second and proxy.
	add(hurt, tight, "tight-hurt", 3200)
	add(hurt, wide, "wide", 3200)
	add(hurt, leased, "leased", 1600)
	for shard := range shardCount {
		if shard != hurt {
			add(shard, tight, "tight", 40)
			add(shard, wide, "wide", 20)
		}
	}
	set, _, err := config.ParseLimits("fleet", []byte(text.String()), limit.CompileOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	f.set = set
	for _, t := range f.tenants {
		t.params = set.TenantLimits(t.name)[0].Params
	}
}

// leftOfLeased is the remaining content of a leased limit at the beginning: it is leased
// until the fault, and used up some seconds later, so that units admitted twice are
// visible.
const leftOfLeased = 4500

// beginTraffic starts all requests. Tenants with tight limits have only the rate: their
// bursts are used up at once.
func (f *fleet) beginTraffic() {
	for i := range f.proxies {
		f.steady(i)
	}
	for i, t := range f.tenants {
		switch t.kind {
		case tight:
			f.add(1, func() { f.ask(f.proxies[i], t, t.params.Capacity) })
		case leased:
			f.add(1, func() { f.ask(f.proxies[i], t, t.params.Capacity-leftOfLeased) })
		}
		if t.shard != hurt {
			f.scattered(t)
		}
	}
}

// steady sends requests of a proxy's clients to the hurt shard once in pace. They use
// another proxy when theirs is dead.
func (f *fleet) steady(home int) {
	f.add(f.now+f.about(pace.Microseconds()), func() {
		if f.proxies[home].store.gone {
			home = f.living()
		}
		// In the proportion of the tenants' rates: 3200, 3200, 1600.
		f.ask(f.proxies[home], f.tenants[f.random.IntN(5)/2], f.cost)
		f.steady(home)
	})
}

// scattered sends requests of a tenant at its rate, each through another proxy.
func (f *fleet) scattered(t *tenant) {
	f.add(f.now+f.about(int64(1e6/t.rate)), func() {
		f.ask(f.proxies[f.living()], t, f.cost)
		f.scattered(t)
	})
}

// about draws a time with the given mean, at most a half more.
func (f *fleet) about(micros int64) int64 { return micros/2 + f.random.Int64N(micros+1) }

// living draws a proxy that is alive.
func (f *fleet) living() int {
	for {
		if i := f.random.IntN(len(f.proxies)); !f.proxies[i].store.gone {
			return i
		}
	}
}
