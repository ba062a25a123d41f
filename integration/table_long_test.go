//go:build long

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
)

const (
	changeRate    = 50 // a second
	changeTime    = 20 * time.Second
	changeTenants = 200
	burstSize     = 1_000
	burstWriters  = 8
	burstLate     = 2 * time.Minute // an emulator is slow when it has many waiting messages

	lookEvery = 10 * time.Millisecond
	lookAt    = 50 // the oldest changes: polling all of a burst would occupy the machine
)

// missed matches the log line of a proxy that has read the table again.
var missed = regexp.MustCompile(`were missed, and read again" items=\d+`)

// change is a write of a tenant with a limit of its own. A proxy that enforces it, or a
// later one, has the change.
type change struct {
	tenant string
	limit  int64
	sent   time.Time
}

// looker polls the limits of tenants at a proxy until it enforces the written ones.
type looker struct {
	mu      sync.Mutex // guards the fields below
	waiting []change
	took    []time.Duration
}

func (l *looker) add(c change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, c)
}

// left returns how many changes are not enforced.
func (l *looker) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// look polls a proxy until ctx ends.
func (l *looker) look(ctx context.Context, t *testing.T, p *proxy) {
	c := p.client()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.mu.Lock()
		waiting := slices.Clone(l.waiting[:min(len(l.waiting), lookAt)])
		l.mu.Unlock()
		if len(waiting) == 0 {
			continue
		}
		pipe := c.Pipeline()
		for _, w := range waiting {
			pipe.Do(ctx, "RL.CHECK", w.tenant, "-", "-")
		}
		cmds, err := pipe.Exec(ctx)
		now := time.Now()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		there := map[int64]bool{}
		for i, cmd := range cmds {
			fields, _ := cmd.(interface{ Slice() ([]any, error) }).Slice()
			if len(fields) == 7 && fields[1].(int64) >= waiting[i].limit {
				there[waiting[i].limit] = true
			}
		}
		l.mu.Lock()
		l.waiting = slices.DeleteFunc(l.waiting, func(w change) bool {
			if there[w.limit] {
				l.took = append(l.took, now.Sub(w.sent))
			}
			return there[w.limit]
		})
		l.mu.Unlock()
	}
}

// write writes a tenant, after passing the change to the lookers. Only one goroutine may
// write a tenant.
func (w *tenantWriter) write(t *testing.T, tenant string, lookers ...*looker) {
	c := change{tenant, w.limit(), time.Now()}
	for _, l := range lookers {
		l.add(c)
	}
	if _, err := w.put(t.Context(), tables.PrefixTenant+tenant, tenantBody(c.limit)); err != nil {
		t.Error(err)
	}
}

// takeAcks returns the durations of the writes since the last call.
func (w *tenantWriter) takeAcks() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	acks := w.acks
	w.acks = nil
	return acks
}

// burst writes n tenants as fast as possible, each after calling announce with the change.
func (w *tenantWriter) burst(t *testing.T, prefix string, n, writers int, announce func(tenant string, limit int64)) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := i; j < n; j += writers {
				tenant, limit := fmt.Sprint(prefix, j), w.limit()
				announce(tenant, limit)
				if _, err := w.put(t.Context(), tables.PrefixTenant+tenant, tenantBody(limit)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// quantiles formats quantiles of durations.
func quantiles(d []time.Duration) string {
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[min(len(d)-1, int(q*float64(len(d))))].Round(time.Millisecond) }
	return fmt.Sprintf("p50 %s, p99 %s, worst %s", at(.5), at(.99), d[len(d)-1].Round(time.Millisecond))
}

// TestLongPropagation measures the time from a write of a tenant until three proxies
// enforce it: at 50 a second, and 1,000 at once. It also measures the emulator alone,
// which is why no figure fails the test: the emulator needs a processor for 50 changes a
// second, the time of a request grows with the number of waiting messages, and it loses
// some messages that arrive while others are deleted. Those changes must be enforced in
// the end, too.
func TestLongPropagation(t *testing.T) {
	s := newSite(t)
	s.push(tableLimits(t, ""), "ann")
	s.controlPlane()
	w := newTenantWriter(s.table)
	var proxies []*proxy
	for range 3 {
		proxies = append(proxies, s.serve(filepath.Join(t.TempDir(), "snapshot")))
	}
	enforce(t, "nobody", 100, proxies...)

	steady := measure(t, proxies, func(lookers []*looker) {
		var wg sync.WaitGroup
		tick := time.NewTicker(time.Second / changeRate)
		defer tick.Stop()
		busy := make(chan struct{}, changeTenants/2) // far from the next write of the same tenant
		for i := range changeRate * int(changeTime.Seconds()) {
			<-tick.C
			busy <- struct{}{}
			wg.Go(func() {
				w.write(t, fmt.Sprintf("steady%d", i%changeTenants), lookers...)
				<-busy
			})
		}
		wg.Wait()
	})
	t.Logf("%d changes a second for %s: %s from write to enforcement by each of %d proxies; the write itself: %s",
		changeRate, changeTime, quantiles(steady), len(proxies), quantiles(w.takeAcks()))

	emulatorAlone(t)
	begun := time.Now()
	burst := measure(t, proxies, func(lookers []*looker) {
		writeMany(t, w, "burst", lookers...)
		t.Logf("a burst of %d writes by %d writers is written after %s", burstSize, burstWriters, time.Since(begun).Round(time.Millisecond))
	})
	t.Logf("a burst of %d writes: %s from write to enforcement, all are enforced after %s; the write itself: %s",
		burstSize, quantiles(burst), time.Since(begun).Round(time.Millisecond), quantiles(w.takeAcks()))
	for i, p := range proxies {
		t.Logf("proxy %d has read missed changes by a scan: %v", i, missed.FindAllString(p.output(), -1))
	}
	// The list of all limits has those of tenants in the order of their arrival.
	var said []string
	for _, p := range proxies {
		said = append(said, fmt.Sprint(p.client().Do(t.Context(), "RL.LIMITS", "burst1").Val()))
	}
	if said[0] == "" || said[1] != said[0] || said[2] != said[0] {
		t.Errorf("the proxies say %q", said)
	}
}

// writeMany writes many tenants as fast as possible.
func writeMany(t *testing.T, w *tenantWriter, prefix string, lookers ...*looker) {
	t.Helper()
	w.burst(t, prefix, burstSize, burstWriters, func(tenant string, limit int64) {
		for _, l := range lookers {
			l.add(change{tenant, limit, time.Now()})
		}
	})
}

// measure runs writes with a looker for each proxy, and returns how long each change took
// to reach each proxy, when all are enforced.
func measure(t *testing.T, proxies []*proxy, write func([]*looker)) (took []time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	lookers := make([]*looker, len(proxies))
	for i, p := range proxies {
		lookers[i] = &looker{}
		wg.Go(func() { lookers[i].look(ctx, t, p) })
	}
	write(lookers)
	// Messages that the emulator loses are detected by the second digest that differs.
	late := time.Now().Add(burstLate)
	for i, l := range lookers {
		for l.left() > 0 && time.Now().Before(late) {
			pause(lookEvery)
		}
		if n := l.left(); n > 0 {
			t.Fatalf("proxy %d does not enforce %d changes:\n%s", i, n, proxies[i].output())
		}
		took = append(took, l.took...)
	}
	return took
}

// emulatorAlone measures an emulator without other clients: writes, and messages to three
// queues.
func emulatorAlone(t *testing.T) {
	t.Helper()
	s := newSite(t)
	begun := time.Now()
	w := newTenantWriter(s.table)
	writeMany(t, w, "alone")
	t.Logf("the emulator alone: %.0f writes a second with %d writers, %s", burstSize/time.Since(begun).Seconds(), burstWriters, quantiles(w.takeAcks()))

	var queues []*dynamo.Queue
	for range 3 {
		q, err := dynamo.Subscribe(t.Context(), s.Config, s.topic)
		if err != nil {
			t.Fatal(err)
		}
		queues = append(queues, q)
	}
	for _, backlog := range []int{10, 50, 250} {
		publishing, receiving := fanOut(t, dynamo.NewTopic(s.Config, s.topic), queues, backlog)
		t.Logf("the emulator alone: %d messages are published to %d queues in %s, %.0f a second, and received in %s, %.0f a second from each",
			backlog, len(queues), publishing.Round(time.Millisecond), float64(backlog)/publishing.Seconds(), receiving.Round(time.Millisecond), float64(backlog)/receiving.Seconds())
	}
}

// fanOut publishes messages and then receives them, one after the other: the emulator may
// lose messages that arrive while others are deleted.
func fanOut(t *testing.T, topic *dynamo.Topic, queues []*dynamo.Queue, n int) (publishing, receiving time.Duration) {
	t.Helper()
	messages := make([]tables.Message, n)
	for i := range messages {
		messages[i] = tables.Message{Item: &tables.Item{Key: fmt.Sprintf("TENANT#%d", i), Version: 1, Body: json.RawMessage(`{}`)}}
	}
	begun := time.Now()
	if _, err := topic.Publish(t.Context(), messages); err != nil {
		t.Error(err)
	}
	publishing = time.Since(begun)
	begun = time.Now()
	var wg sync.WaitGroup
	for _, q := range queues {
		wg.Go(func() {
			for received := 0; received < n; {
				got, _, err := q.Receive(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				received += len(got)
			}
		})
	}
	wg.Wait()
	return publishing, time.Since(begun)
}
