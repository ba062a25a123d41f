package integration

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

// faultLimits are two limits that are never reached, one of which fails closed, and a
// limit that gets more requests than it admits.
const (
	tightRate   = 20 // units a second, and the burst
	faultLimits = `
version: 1
default_plan: p
plans:
  p:
    - {id: wide, by: [tenant], when: {op: wide}, rate: 1000000/s, on_error: open}
    - {id: closed, by: [tenant], when: {op: closed}, rate: 1000000/s, on_error: closed}
    - {id: tight, by: [tenant], when: {op: tight}, rate: 20/s, burst: 20, on_error: open}
`
	callers      = 4                    // on each proxy
	callPause    = 4 * time.Millisecond // between two checks of a caller
	wideTenants  = 200                  // spread over all hash slots
	tightTenants = 20                   // each gets about twice as many requests as its limit admits, and those of the closed limit too
)

// The operations, by their limits.
const (
	opWide   = "wide"
	opClosed = "closed"
	opTight  = "tight"
)

// sample is the result of one check.
type sample struct {
	at              time.Time
	took            time.Duration
	proxy           int
	tenant, op      string
	allowed         bool
	source, problem string
}

// end returns when the reply arrived.
func (s *sample) end() time.Time { return s.at.Add(s.took) }

// slot returns the hash slot of the sample's bucket.
func (s *sample) slot() uint16 { return limit.HashSlot([]byte(s.tenant)) }

// wrong reports a denial that no fault excuses: by a limit that is not reached, except by
// a closed limit without the store.
func (s *sample) wrong() bool {
	return s.problem == "" && !s.allowed && s.op != opTight && !s.failedClosed()
}

// failedClosed reports a denial of a closed limit that the store did not make.
func (s *sample) failedClosed() bool {
	return s.op == opClosed && !s.allowed && s.source == "policy"
}

// connect returns the callers' clients of each proxy.
func connect(proxies []*proxy) []*redis.Client {
	var clients []*redis.Client
	for _, p := range proxies {
		for range callers {
			clients = append(clients, p.client())
		}
	}
	return clients
}

// barrage sends checks to proxies until it is stopped.
type barrage struct {
	stop    chan struct{}
	wg      sync.WaitGroup
	mu      sync.Mutex // guards samples
	samples []sample
}

// startBarrage starts a caller on each client.
func startBarrage(clients []*redis.Client) *barrage {
	b := &barrage{stop: make(chan struct{})}
	for i, c := range clients {
		b.wg.Go(func() { b.call(c, i/callers, rand.New(rand.NewPCG(0, uint64(i)))) })
	}
	return b
}

func (b *barrage) call(c *redis.Client, proxy int, random *rand.Rand) {
	tick := time.NewTicker(callPause)
	defer tick.Stop()
	var own []sample
	for n := 0; ; n++ {
		select {
		case <-b.stop:
			b.mu.Lock()
			b.samples = append(b.samples, own...)
			b.mu.Unlock()
			return
		case <-tick.C:
		}
		s := sample{op: [...]string{opTight, opClosed, opWide, opWide}[n%4], proxy: proxy}
		s.tenant = fmt.Sprint("t", random.IntN(tightTenants))
		if s.op == opWide {
			s.tenant = fmt.Sprint("w", random.IntN(wideTenants))
		}
		s.at = time.Now()
		v, err := check(c, s.tenant, s.op, "-")
		s.took, s.allowed, s.source = time.Since(s.at), v.allowed, v.source
		if err != nil {
			s.problem = err.Error()
		}
		own = append(own, s)
	}
}

// end stops the callers and returns their samples, by time.
func (b *barrage) end() []sample {
	close(b.stop)
	b.wg.Wait()
	slices.SortFunc(b.samples, func(x, y sample) int { return x.at.Compare(y.at) })
	return b.samples
}

// degraded reports a decision that was made without the store.
func (s *sample) degraded() bool { return s.source == "backstop" || s.failedClosed() }
