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
	// answerWithin bounds the delay of a reply, unless the machine was stalled.
	answerWithin = 250 * time.Millisecond
)

// question is the result of one RL.CHECK.
type question struct {
	sample
	limit int64
}

// asking requests decisions from proxies, from each on a connection of its own, until it
// is stopped.
type asking struct {
	stop chan struct{}
	wg   sync.WaitGroup
	of   [][]question // the results by proxy
}

// startAsking starts it. Every other question is about a tenant that no test changes.
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

// answers is the result of all questions.
type answers struct {
	n          int
	worst, gap time.Duration // the longest answer, and the longest time without one
}

// check fails the test if a decision was late, or was made with a wrong limit of a tenant
// that no test changes.
func (a *asking) check(t *testing.T, untouched map[string]int64, stalls []stall) (sum answers) {
	t.Helper()
	reported := map[string]bool{} // report each kind of failure once for each proxy
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
			if kind := fmt.Sprint(why, q.proxy); why != "" && !reported[kind] {
				reported[kind] = true
				t.Errorf("%s, the first one of proxy %d: %s, limit %d of %d, after %s, %s", why, q.proxy, q.tenant, q.limit, want, q.took, q.problem)
			}
		}
	}
	return sum
}
