package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	pacedClients = 8
	// pacedTick is the interval at which a client sends the checks that have become due, and
	// pacedMost bounds those of one pipeline, so that a client that has waited for long does
	// not flood the proxy.
	pacedTick = 10 * time.Millisecond
	pacedMost = 256
	// pacedTenants are spread over all hash slots.
	pacedTenants = 300
)

// pacedTally counts the replies to a paced load.
type pacedTally struct {
	sources map[string]int // decisions, by source
	errors  map[string]int // error replies, by text
}

func newPacedTally() pacedTally {
	return pacedTally{sources: map[string]int{}, errors: map[string]int{}}
}

// add adds the counts of another tally.
func (y *pacedTally) add(o pacedTally) {
	for source, n := range o.sources {
		y.sources[source] += n
	}
	for text, n := range o.errors {
		y.errors[text] += n
	}
}

// decisions returns their number, of all sources.
func (y *pacedTally) decisions() (n int) {
	for _, one := range y.sources {
		n += one
	}
	return n
}

// String lists the decisions by source, and the errors.
func (y *pacedTally) String() string {
	words := []string{fmt.Sprintf("%d decisions", y.decisions())}
	for _, source := range slices.Sorted(maps.Keys(y.sources)) {
		words = append(words, fmt.Sprintf("%d of %s", y.sources[source], source))
	}
	failed := 0
	for _, n := range y.errors {
		failed += n
	}
	return strings.Join(append(words, fmt.Sprintf("%d errors", failed)), ", ")
}

// fromStoreOnly fails the test unless all replies are decisions of the store.
func (y *pacedTally) fromStoreOnly(t *testing.T) {
	t.Helper()
	if len(y.errors) > 0 || y.sources["store"] == 0 || y.sources["store"] != y.decisions() {
		t.Errorf("not all are decisions of the store: %s %v", y, y.errors)
	}
}

// pacedLoad sends checks to a proxy at a fixed rate, however fast it answers.
type pacedLoad struct {
	stop  chan struct{}
	wg    sync.WaitGroup
	began time.Time
	// marks counts the begins and ends of disturbances of the store: it is odd during one.
	marks atomic.Int64

	mu sync.Mutex // guards the fields below
	// quiet has the replies to pipelines without a disturbance between their first request and
	// last reply, and disturbed those of each disturbance.
	quiet     pacedTally
	disturbed []pacedTally
	ended     time.Time
}

// startPaced starts a load of a number of checks a second.
func startPaced(p *proxy, rate int) *pacedLoad {
	l := &pacedLoad{stop: make(chan struct{}), began: time.Now(), quiet: newPacedTally()}
	for i := range pacedClients {
		c := p.client()
		l.wg.Go(func() { l.send(c, i, float64(rate)/pacedClients) })
	}
	return l
}

// send sends the checks of one client that are due.
func (l *pacedLoad) send(c *redis.Client, client int, rate float64) {
	tick := time.NewTicker(pacedTick)
	defer tick.Stop()
	for sent := 0; ; {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		due := min(int(time.Since(l.began).Seconds()*rate)-sent, pacedMost)
		if due <= 0 {
			continue
		}
		before := l.marks.Load()
		tally := checkPipeline(c, due, func(i int) string { return fmt.Sprint("t", (client+(sent+i)*pacedClients)%pacedTenants) })
		sent += due
		l.count(tally, before, l.marks.Load())
	}
}

// checkPipeline sends n checks as one pipeline, and counts the replies.
func checkPipeline(c *redis.Client, n int, tenant func(i int) string) pacedTally {
	pipe := c.Pipeline()
	for i := range n {
		pipe.Do(context.Background(), "RL.CHECK", tenant(i), "-", "-")
	}
	cmds, _ := pipe.Exec(context.Background()) // the commands have the errors
	tally := newPacedTally()
	for _, cmd := range cmds {
		if v, err := asVerdict(cmd.(*redis.Cmd)); err != nil {
			tally.errors[err.Error()]++
		} else {
			tally.sources[v.source]++
		}
	}
	return tally
}

// count adds the replies to a pipeline, given the marks before and after it.
func (l *pacedLoad) count(tally pacedTally, before, after int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before == after && before%2 == 0 {
		l.quiet.add(tally)
	} else {
		l.disturbed[before/2].add(tally)
	}
	l.ended = time.Now()
}

// total returns the number of decisions so far.
func (l *pacedLoad) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.quiet.decisions()
	for i := range l.disturbed {
		n += l.disturbed[i].decisions()
	}
	return n
}

// awaitMore waits for n further decisions.
func (l *pacedLoad) awaitMore(t *testing.T, n int) {
	t.Helper()
	from := l.total()
	eventually(t, "more decisions", func() bool { return l.total() >= from+n })
}

// disturb runs f, which disturbs the store until it returns.
func (l *pacedLoad) disturb(f func()) {
	l.mu.Lock()
	l.disturbed = append(l.disturbed, newPacedTally())
	l.mu.Unlock()
	l.marks.Add(1)
	f()
	l.marks.Add(1)
}

// end ends the load, and returns the decisions a second.
func (l *pacedLoad) end() (rate float64) {
	close(l.stop)
	l.wg.Wait()
	return float64(l.total()) / l.ended.Sub(l.began).Seconds()
}
