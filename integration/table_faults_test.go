package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
)

// tableFault is a fault of a component that carries limits to proxies, with its repair.
type tableFault struct {
	name   string
	planes int // control planes, at least one
	// lasts is the duration of the fault.
	lasts time.Duration
	// beside reports that it may run concurrently with others, behind the rest: it mostly
	// waits.
	beside bool
	// furnish adds to the scene before its control planes start, and may be nil.
	furnish func(t *testing.T, s *tableScene)
	make    func(t *testing.T, s *tableScene)
	heal    func(t *testing.T, s *tableScene)
	// also makes checks beyond those of every fault, when all proxies agree. It may be
	// nil.
	also func(t *testing.T, s *tableScene, o *tableOutcome)
}

// tableOutcome is the result of a run with a fault.
type tableOutcome struct {
	fault   tableFault
	changes int
	refused int // writes that failed because AWS was away
	answers answers
	healed  time.Time
	agreed  time.Duration // since the last change or since the repair
	learned learned
}

// settleTime is how long limits change before a fault and after it.
const settleTime = 2 * time.Second

// runTableFault injects a fault while limits change and decisions are requested.
func runTableFault(t *testing.T, f tableFault) *tableOutcome {
	t.Helper()
	s := newTableScene(t, max(f.planes, 1), f.furnish)
	s.awaitAgreement(t, s.proxies...)
	stalls := watchStalls(t)
	asking := s.startAsking()
	s.writing = s.startWriting(t.Context())
	o := &tableOutcome{fault: f}
	pause(settleTime)
	f.make(t, s)
	pause(f.lasts)
	f.heal(t, s)
	o.healed = time.Now()
	pause(settleTime)
	s.writing.end()
	o.agreed = s.awaitAgreement(t, s.proxies...).Sub(maxTime(o.healed, s.writing.last))
	o.changes, o.refused = len(s.writer.written()), s.writing.failed
	o.learned = s.learned()
	if f.also != nil {
		f.also(t, s, o)
	}
	asking.end()
	o.answers = asking.check(t, s.untouched, stalls())
	t.Logf("the relay: %s", s.relay.done())
	return o
}

// runTableFaults runs faults, and prints a table of their outcomes.
func runTableFaults(t *testing.T, faults ...tableFault) {
	var (
		mu   sync.Mutex // guards rows
		text strings.Builder
		rows = tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	)
	fmt.Fprintln(rows, "fault\tchanges\trefused\tdecisions\tworst answer\tworst gap\tall agree after\tby message\tby scan\tscans")
	t.Cleanup(func() {
		_ = rows.Flush()
		fmt.Printf("\n%s\n", &text)
	})
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			if f.beside {
				t.Parallel()
			}
			o := runTableFault(t, f)
			mu.Lock()
			defer mu.Unlock()
			ms := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
			fmt.Fprintf(rows, "%s\t%d\t%d\t%d\t%s\t%s\t%s\t%d\t%d\t%d\n", f.name, o.changes, o.refused, o.answers.n,
				ms(o.answers.worst), ms(o.answers.gap), ms(o.agreed), o.learned.byMessage, o.learned.byScan, o.learned.scans)
		})
	}
}

// garbage is sent to the queues of proxies like messages.
var garbage = []string{
	"no JSON", "null", "[]", "7", `"item"`, "{}", `{"item":null,"digest":null}`, `{"item":[]}`,
	`{"item":{"key":7}}`, `{"item":{"key":"TENANT#calm0","version":"7","body":{}}}`,
	`{"item":{"key":"TENANT#calm0","version":0,"body":{"plan":"gold"}}}`,
	`{"item":{"key":"TENANT#calm0","version":-1,"deleted":true}}`, `{"item":{"key":"nothing of ours","version":7}}`,
	`{"digest":{"count":-1,"sum":0}}`, `{"digest":{"sum":-1}}`, strings.Repeat("x", 200_000),
}

// poisonQueues sends garbage to the queue of every proxy.
func (s *tableScene) poisonQueues(t *testing.T) {
	t.Helper()
	for _, o := range s.relay.all() {
		for _, body := range garbage { // one at a time: SQS bounds the size of a batch
			if err := s.relay.send(t.Context(), o.url, []string{body}); err != nil {
				t.Error(err)
			}
		}
	}
}

// publishDigests publishes digests of the table to all proxies until the test is over, like
// a control plane, but every second.
func (s *tableScene) publishDigests(t *testing.T) {
	topic := dynamo.NewTopic(s.Config, s.topic)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			items, err := s.table.Scan(ctx)
			var d tables.Digest
			for _, it := range items {
				d.Add(&it)
			}
			if err == nil {
				_, err = topic.Publish(ctx, []tables.Message{{Digest: &d, At: time.Now().UTC()}})
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
}

// disturbed is a fault in which a fifth of the messages is lost, a fifth duplicated and a
// fifth delayed, with garbage among them.
var disturbed = tableFault{
	name: "messages lost, doubled, late, garbage", lasts: 15 * time.Second,
	make: func(t *testing.T, s *tableScene) {
		s.relay.disturb(.2)
		s.poisonQueues(t)
	},
	heal: func(_ *testing.T, s *tableScene) { s.relay.disturb(0) },
	also: func(t *testing.T, s *tableScene, o *tableOutcome) {
		// The table need not be read: a later change of an item makes up for a lost one.
		if strings.HasPrefix(s.relay.done(), "0 lost") || o.learned.old == 0 || o.learned.bad < len(garbage)/2*len(s.proxies) {
			t.Errorf("nothing of it happened: %+v", o.learned)
		}
	},
}

// TestTableFaults is the quick part of the suite of limits as data. `make faults-aws`
// runs all of it. It does not wait for the digests of the control plane, which come when
// nothing changes.
func TestTableFaults(t *testing.T) {
	quick := disturbed
	quick.lasts = 2 * time.Second
	quick.heal = func(t *testing.T, s *tableScene) {
		s.relay.disturb(0)
		s.publishDigests(t)
	}
	runTableFaults(t, quick)
}
