package integration

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	askEvery = 5 * time.Millisecond
	// answerWithin is how late no answer may come, unless the machine stood still.
	answerWithin = 250 * time.Millisecond
)

// question is what one RL.CHECK got.
type question struct {
	sample
	limit int64
}

// asking asks proxies for decisions, each on a connection of its own, until it is stopped.
type asking struct {
	stop chan struct{}
	wg   sync.WaitGroup
	of   [][]question // by proxy
}

// startAsking begins it: every other question is of a tenant that nobody changes.
func (s *tableScene) startAsking() *asking {
	a := &asking{stop: make(chan struct{}), of: make([][]question, len(s.proxies))}
	var untouched []string
	for tenant := range s.untouched {
		untouched = append(untouched, tenant)
	}
	slices.Sort(untouched)
	tenants := slices.Clone(s.tenants)
	for i, p := range s.proxies {
		c := p.client()
		a.wg.Go(func() {
			tick := time.NewTicker(askEvery)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-a.stop:
					return
				case <-tick.C:
				}
				q := question{sample: sample{at: time.Now(), proxy: i, tenant: untouched[n/2%len(untouched)]}}
				if n%2 == 1 {
					q.tenant = tenants[n/2%len(tenants)]
				}
				v, err := check(c, q.tenant, "-", "-")
				q.took, q.limit, q.source = time.Since(q.at), v.limit, v.source
				if err != nil {
					q.problem = err.Error()
				}
				a.of[i] = append(a.of[i], q)
			}
		})
	}
	return a
}

// end stops it.
func (a *asking) end() {
	close(a.stop)
	a.wg.Wait()
}

// answers is what decisions came to.
type answers struct {
	n          int
	worst, gap time.Duration // the longest answer, and the longest time without one
}

// check fails the test where a decision was not made in time, or with a limit of a tenant
// that nobody changed which is not its own.
func (a *asking) check(t *testing.T, untouched map[string]int64, stalls []stall) (sum answers) {
	t.Helper()
	told := map[string]bool{} // what fails is told once for each kind and proxy
	for _, of := range a.of {
		last := of[0].at
		for i := range of {
			q := &of[i]
			sum.n++
			sum.worst = max(sum.worst, q.took)
			sum.gap = max(sum.gap, q.end().Sub(last))
			last = q.end()
			want, calm := untouched[q.tenant]
			why := ""
			switch {
			case q.problem != "":
				why = "an error"
			case q.took-q.stalled(stalls) > answerWithin:
				why = "an answer that came late"
			case calm && q.limit != want:
				why = "a limit that nobody changed"
			}
			if kind := fmt.Sprint(why, q.proxy); why != "" && !told[kind] {
				told[kind] = true
				t.Errorf("%s, the first one of proxy %d: %s, limit %d of %d, after %s, %s", why, q.proxy, q.tenant, q.limit, want, q.took, q.problem)
			}
		}
	}
	return sum
}
