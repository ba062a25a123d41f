package integration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/faultnet"
	"github.com/limitgate/limitgate/internal/redistest"
)

const (
	proxies      = 3
	shards       = 3
	faultTimeout = 5 * time.Millisecond   // the default --decision-timeout
	storeTimeout = 250 * time.Millisecond // the default --redis-io-timeout
	calm         = 250 * time.Millisecond // how long the store must decide all checks for the state to be normal
	ceiling      = 3                      // multiple of the limit that may be admitted without the store
)

// fault is a fault of the store, with its repair.
type fault struct {
	name string
	// lasts is the duration of the fault.
	lasts time.Duration
	// coverage is cluster-require-full-coverage.
	coverage bool
	// linked puts links in front of the nodes, clocked gives them a clock.
	linked, clocked bool
	// args are additional settings of the nodes.
	args []string
	// timeout is the proxies' --decision-timeout, if it is not the default: where counts
	// must be exact, a slow machine must not turn an exact decision into a degraded one.
	timeout time.Duration
	// moves reports that hash slots move to other masters.
	moves bool
	// emptied reports whether a shard's master returns without data, given whether
	// another one has replaced it. It may be nil.
	emptied func(shard int, promoted bool) bool
	make    func(t *testing.T, s *scene)
	heal    func(t *testing.T, s *scene)
	// also makes checks beyond those of every fault, and may be nil.
	also func(t *testing.T, o *outcome)
}

// deadline is the proxies' --decision-timeout.
func (f *fault) deadline() time.Duration { return cmp.Or(f.timeout, faultTimeout) }

// scene is the environment of a fault: masters, a replica of each, and proxies with their
// clients.
type scene struct {
	*redistest.Cluster
	links   []*faultnet.Link
	clock   *redistest.Clock
	proxies []*proxy
	clients []*redis.Client
}

// setScene starts the environment of a fault.
func setScene(t *testing.T, f fault) *scene {
	t.Helper()
	s := &scene{}
	var production *production
	if *secureFaults {
		production = newProduction(t)
		f.args = append(slices.Clone(f.args), production.redisArgs()...)
	}
	if f.clocked {
		s.clock = redistest.UseClock(t)
	}
	coverage := "no"
	if f.coverage {
		coverage = "yes"
	}
	args := append([]string{"--cluster-node-timeout", "1000", "--cluster-require-full-coverage", coverage}, f.args...)
	s.Cluster = redistest.StartCluster(t, shards, 1, args...)
	addrs := s.Addrs()
	if production != nil {
		addrs = production.addrs(s.Cluster)
	}
	if f.linked {
		behind := s.Behind
		if production != nil {
			behind = s.BehindTLS
		}
		s.links = behind(t)
		for i, l := range s.links {
			addrs[i] = l.Addr()
		}
	}
	limits := writeLimits(t, faultLimits+historyLimits+historyTenantLimits(s.FirstOwner))
	for range proxies {
		flags := []string{
			"--redis", strings.Join(addrs[:shards], ","), "--instances", fmt.Sprint(proxies), "--decision-timeout", f.deadline().String(),
			"--redis-io-timeout", max(f.deadline(), storeTimeout).String(), "--deny-cache-size", "0",
		}
		if production == nil {
			s.proxies = append(s.proxies, serve(t, limits, flags...))
		} else {
			s.proxies = append(s.proxies, production.serve(t, limits, flags...))
		}
	}
	s.clients = connect(s.proxies)
	return s
}

// awaitClosed waits until the breakers of all proxies are closed for all masters.
func (s *scene) awaitClosed(t *testing.T) {
	t.Helper()
	eventually(t, "every breaker is closed", func() bool {
		m := ""
		for _, p := range s.proxies {
			m += p.get("/readyz")
		}
		return !strings.Contains(m, `"breaker":"open"`) && !strings.Contains(m, `"breaker":"half_open"`)
	})
}

// runFault injects a fault under load.
func runFault(t *testing.T, f fault) *outcome {
	t.Helper()
	s := setScene(t, f)
	stalls := watchStalls(t)
	b := startBarrage(s.clients)
	hs := startHistories(s)
	pause(2 * time.Second)
	o := &outcome{fault: f, scene: s, made: time.Now()}
	hs.enter(whileFault)
	f.make(t, s)
	pause(f.lasts)
	f.heal(t, s)
	o.healed = time.Now()
	s.awaitClosed(t)
	o.closed = time.Now()
	hs.enter(afterFault)
	pause(3 * time.Second)
	o.samples = b.end()
	hs.end()
	o.stalls = stalls()
	o.explain(t, hs)
	o.ok = normalSince(o.samples, o.made)
	return o
}

// normalSince returns the end of the last window since the fault in which more checks
// were decided without the store than before the fault on this machine: the bound is the
// larger of one in a hundred and twice that share.
func normalSince(samples []sample, made time.Time) time.Time {
	all, without := map[int64]int{}, map[int64]int{}
	before, beforeWithout := 0, 0
	for _, s := range samples {
		degraded := 0
		if s.degraded() {
			degraded = 1
		}
		if s.at.Before(made) {
			before++
			beforeWithout += degraded
			continue
		}
		window := int64(s.at.Sub(made) / calm)
		all[window]++
		without[window] += degraded
	}
	usual := max(0.01, 2*float64(beforeWithout)/float64(before))
	last := made
	for window, n := range without {
		end := made.Add(time.Duration((window + 1) * int64(calm)))
		if float64(n) > usual*float64(all[window]) && end.After(last) {
			last = end
		}
	}
	return last
}

// pause waits for d, the fixed duration of a fault or of a step in a test.
func pause(d time.Duration) { <-time.After(d) }

// nothing is the repair of a fault that ends by itself.
func nothing(*testing.T, *scene) {}

// hang stops a master and resumes it.
var hang = fault{
	name: "SIGSTOP a primary, wake it", lasts: 600 * time.Millisecond,
	make: func(_ *testing.T, s *scene) { s.Nodes[0].Stop() },
	heal: func(_ *testing.T, s *scene) { s.Nodes[0].Cont() },
}

// die kills a master, and its replica takes over.
var die = fault{
	name: "kill -9 a primary", lasts: 5 * time.Second,
	make: func(_ *testing.T, s *scene) { s.Nodes[0].Kill() },
	heal: nothing,
}

// movingTenant is in the hash slot that moves.
const movingTenant = "t1"

// migration moves a hash slot there and back, so many times, which is routine work of
// operators.
func migration(times int) fault {
	return fault{
		name: "a slot moves there and back", moves: true,
		make: func(t *testing.T, s *scene) {
			slot := s.KeySlot(t, "lg:t:{"+movingTenant+"}")
			from := s.NodeForSlot(t, slot)
			to := s.Nodes[0]
			if from == to {
				to = s.Nodes[1]
			}
			for range times {
				s.MoveSlot(t, slot, to, func() { pause(50 * time.Millisecond) })
				s.MoveSlot(t, slot, from, func() { pause(50 * time.Millisecond) })
			}
		},
		heal: nothing,
		// Limits that fail closed follow the hash slot.
		timeout: 2 * time.Second,
		also: func(t *testing.T, o *outcome) {
			if n := o.count((*sample).failedClosed); n > 0 {
				t.Errorf("%d checks of limits that fail closed were denied:%s", n, o.first((*sample).failedClosed))
			}
		},
	}
}

// reset is a master that returns without data before its replica has replaced it; the
// replica then copies the empty master.
var reset = fault{
	name: "kill -9 a primary, back empty at once",
	make: func(_ *testing.T, s *scene) { s.Nodes[0].Kill() },
	heal: func(t *testing.T, s *scene) {
		s.Nodes[0].Restart()
		s.WaitHealthy(t)
	},
	emptied: func(shard int, promoted bool) bool { return shard == 0 && !promoted },
}

// TestFaults is the quick part of the fault suite. `make faults` runs all of it.
func TestFaults(t *testing.T) { runFaults(t, hang, die, reset, migration(1)) }

// runFaults runs faults one after another, and prints a table of their outcomes.
func runFaults(t *testing.T, faults ...fault) {
	table := newTable()
	t.Cleanup(func() { fmt.Printf("\n%s\n", table) })
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			o := runFault(t, f)
			o.check(t)
			if f.also != nil {
				f.also(t, o)
			}
			t.Log(table.add(o))
		})
	}
}
