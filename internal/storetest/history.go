package storetest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// history is the concurrent requests of several connections, each with one pipeline after
// the other.
type history struct {
	specs []Spec
	conns [][][]limit.Request
	parts bool // every other connection uses Start and Finish
}

// answer is a request and its answer.
type answer struct {
	conn         int // connection; its answers are in order
	req          limit.Request
	items        []limit.Item
	decision     limit.Decision
	began, ended time.Time // of its pipeline
}

// draw draws histories. Nothing refills during a history, so that time has no effect on
// the decisions.
type draw struct {
	random *rand.Rand
	name   string // of this run, for buckets without other users
	n      int    // number of histories drawn
	ids    int    // of requests
	noIDs  bool
	unit   int64 // of the costs of this history
}

func newDraw(t *testing.T, seed uint64) *draw {
	return &draw{random: rand.New(rand.NewPCG(seed, 2)), name: Fresh(t)}
}

// limits draws a limit for each of some levels. A limit that refills gains its first unit
// after days, and every limit can be used up by one history.
func (d *draw) limits(levels ...[]string) []Spec {
	var specs []Spec
	// The script has shorter paths if all are token buckets.
	algorithms := []string{"token_bucket", "sliding_window", "fixed_window"}[:1+2*d.random.IntN(2)]
	for i, by := range levels {
		capacity := d.unit * (3 + d.random.Int64N(38))
		s := Spec{ID: fmt.Sprintf("l%d-%d", d.n, i), By: by, Rate: fmt.Sprintf("%d/366d", capacity)}
		if s.Algorithm = algorithms[d.random.IntN(len(algorithms))]; s.Algorithm == "token_bucket" {
			// Large buckets of a prime rate have no level, see limit.Params.HasLevel.
			s.Burst = fmt.Sprint(capacity)
			s.Rate = map[bool]string{true: "2/366d", false: "71/366d"}[d.unit == 1]
		}
		specs = append(specs, s)
	}
	return specs
}

// oneSlot draws a history in which every request needs one hash slot only: that of its
// tenant, or that of its address.
func (d *draw) oneSlot() history {
	d.n++
	d.unit = []int64{1, 1, 60}[d.random.IntN(3)]
	levels := [][]string{{"tenant"}, {"tenant", "op"}, {"tenant", "user"}, {"tenant", "op", "user"}, {"tenant"}}
	if byIP := d.random.IntN(3) == 0; byIP {
		levels = append(levels[1:4], []string{"ip"})
	} else {
		d.random.Shuffle(len(levels), func(i, j int) { levels[i], levels[j] = levels[j], levels[i] })
		levels = levels[:1+d.random.IntN(len(levels))]
	}
	h := history{specs: d.limits(levels...), parts: d.random.IntN(2) == 0}
	if i := d.random.IntN(2 * len(h.specs)); i > 0 && i < len(h.specs) && h.specs[i].By[0] == "tenant" {
		h.specs[i].Mode = "shadow"
	}
	onlyIP := slices.Equal(levels[len(levels)-1], []string{"ip"})
	h.conns = d.connections(func() limit.Request {
		if onlyIP && d.random.IntN(2) == 0 {
			return limit.Request{Tenant: d.tenant(0), Addr: d.addr(d.random.IntN(2)), Cost: d.cost()}
		}
		req := limit.Request{Tenant: d.tenant(d.random.IntN(2)), Cost: d.cost()}
		kind := d.random.IntN(4)
		if kind&1 > 0 {
			req.Op = []string{"GET /a", "GET /b"}[d.random.IntN(2)]
		}
		if kind&2 > 0 {
			req.Dims = []limit.Dim{{Name: "user", Value: "u"}}
		}
		return req
	})
	return h
}

// manySlots draws a history in which requests need the hash slots of their tenant and of
// the limits that tenants share.
func (d *draw) manySlots() history {
	d.n++
	d.unit = 1
	h := history{
		specs: d.limits([]string{"tenant"}, []string{"tenant", "op"}, []string{"ip"}, []string{"region"}),
		parts: d.random.IntN(2) == 0,
	}
	h.conns = d.connections(func() limit.Request {
		req := limit.Request{Tenant: d.tenant(d.random.IntN(3)), Addr: d.addr(d.random.IntN(2)), Cost: d.cost()}
		if d.random.IntN(2) == 0 {
			req.Op = "GET /a"
		}
		if d.random.IntN(2) == 0 {
			req.Dims = []limit.Dim{{Name: "region", Value: d.name}}
		}
		return req
	})
	return h
}

func (d *draw) connections(request func() limit.Request) [][][]limit.Request {
	conns := make([][][]limit.Request, 2+d.random.IntN(5))
	for i := range conns {
		conns[i] = make([][]limit.Request, 1+d.random.IntN(4))
		for j := range conns[i] {
			for range 1 + d.random.IntN(8) {
				req := request()
				if !d.noIDs && d.random.IntN(6) == 0 { // sent in a command of its own, in order
					d.ids++
					req.ID = fmt.Sprint("id-", d.ids)
				}
				conns[i][j] = append(conns[i][j], req)
			}
		}
	}
	return conns
}

// cost draws a cost: equal ones often, so that there are equal checks.
func (d *draw) cost() int64 { return d.unit * []int64{1, 1, 1, 2, 2, 3, 5, 30}[d.random.IntN(8)] }

func (d *draw) tenant(i int) string { return fmt.Sprintf("%s-%d-%d", d.name, d.n, i) }

// addr returns an address in a network of its own.
func (d *draw) addr(i int) netip.Addr {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, d.tenant(i))
	var b [16]byte
	h.Sum(b[:0])
	return netip.AddrFrom16(b)
}

// run sends the requests of all connections concurrently, and returns the answers.
func (h *history) run(t *testing.T, l *limiter.Limiter) []answer {
	t.Helper()
	l.SetLimits(Compile(t, h.specs...))
	told := make([][]answer, len(h.conns))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range h.conns {
		wg.Go(func() {
			var b limiter.Batch
			<-start
			for _, pipeline := range h.conns[i] {
				b.Reset()
				b.Requests = append(b.Requests, pipeline...)
				began := time.Now()
				var fast limiter.FastPath
				if i%3 == 1 && l.HasFastPath() {
					told[i] = append(told[i], oneByOne(i, pipeline, l, &fast)...)
					continue
				}
				if h.parts && i%2 == 0 {
					decideInParts(l, &b)
				} else {
					l.Decide(&b)
				}
				told[i] = append(told[i], answers(i, pipeline, &b, began)...)
			}
		})
	}
	close(start)
	wg.Wait()
	return slices.Concat(told...)
}

// decideInParts decides a batch as an event loop does, with Start and Finish.
func decideInParts(l *limiter.Limiter, b *limiter.Batch) {
	done := make(chan uint64, 1)
	if l.Start(b, time.Time{}, func(token uint64) { done <- token }, 1) {
		return
	}
	l.Flush()
	late := time.NewTimer(time.Until(b.Deadline()))
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	if !l.Finish(b) {
		l.FinishBlocking(b)
	}
}

// oneByOne decides requests one after the other, on the fast path where that is possible.
func oneByOne(conn int, pipeline []limit.Request, l *limiter.Limiter, fast *limiter.FastPath) []answer {
	var out []answer
	for i := range pipeline {
		began := time.Now()
		l.BeginFast(fast)
		if fast.Decide(&pipeline[i]) {
			out = append(out, answer{conn, pipeline[i], copied(fast.Items(&pipeline[i])), fast.Decision, began, time.Now()})
			continue
		}
		b := limiter.Batch{Requests: pipeline[i : i+1 : i+1]}
		l.Decide(&b)
		out = append(out, answers(conn, b.Requests, &b, began)...)
	}
	return out
}

// answers copies the answers of a batch, which the next batch overwrites.
func answers(conn int, pipeline []limit.Request, b *limiter.Batch, began time.Time) []answer {
	ended := time.Now()
	var out []answer
	for i, req := range pipeline {
		out = append(out, answer{conn, req, copied(b.Items(i)), b.Decisions[i], began, ended})
	}
	return out
}

// copied returns a copy of items.
func copied(items []limit.Item) []limit.Item {
	items = slices.Clone(items)
	for i := range items {
		items[i].Name = slices.Clone(items[i].Name)
	}
	return items
}
