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
	tables "github.com/limitgate/limitgate/controlplane/table" // there is a function of that name
)

// tableFault breaks something of what carries limits to proxies, and mends it.
type tableFault struct {
	name   string
	planes int // control planes, at least one
	// lasts is how long it is left broken.
	lasts time.Duration
	// beside says that it may run beside others, behind the rest: it mostly waits.
	beside bool
	// furnish adds to the scene before its control planes start, and may be nil.
	furnish func(t *testing.T, s *tableScene)
	make    func(t *testing.T, s *tableScene)
	heal    func(t *testing.T, s *tableScene)
	// also is checked beyond what every fault must keep, when all agree, and may be nil.
	also func(t *testing.T, s *tableScene, o *tableOutcome)
}

// tableOutcome is what a run with a fault came to.
type tableOutcome struct {
	fault   tableFault
	changes int
	refused int // writes for which there was no AWS
	answers answers
	healed  time.Time
	agreed  time.Duration // since the last change, or since all was mended
	learned learned
}

// settleTime is how long things change before a fault and after it.
const settleTime = 2 * time.Second

// runTableFault makes a fault while limits change and decisions are asked for.
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

// runTableFaults makes faults, and prints a table of what they came to.
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

// garbage is what is put into the queues of proxies as if it were messages.
var garbage = []string{
	"no JSON", "null", "[]", "7", `"item"`, "{}", `{"item":null,"digest":null}`, `{"item":[]}`,
	`{"item":{"key":7}}`, `{"item":{"key":"TENANT#calm0","version":"7","body":{}}}`,
	`{"item":{"key":"TENANT#calm0","version":0,"body":{"plan":"gold"}}}`,
	`{"item":{"key":"TENANT#calm0","version":-1,"deleted":true}}`, `{"item":{"key":"nothing of ours","version":7}}`,
	`{"digest":{"count":-1,"sum":0}}`, `{"digest":{"sum":-1}}`, strings.Repeat("x", 200_000),
}

// poisonQueues puts garbage into the queue of every proxy.
func (s *tableScene) poisonQueues(t *testing.T) {
	t.Helper()
	for _, o := range s.relay.all() {
		for _, body := range garbage { // one by one: SQS bounds the size of a batch
			if err := s.relay.send(t.Context(), o.url, []string{body}); err != nil {
				t.Error(err)
			}
		}
	}
}

// tellDigests tells all proxies what the table is until the test is over, as a control
// plane does, but every second.
func (s *tableScene) tellDigests(t *testing.T) {
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

// disturbed is a fifth of the messages lost, a fifth doubled and a fifth late, and garbage
// among them.
var disturbed = tableFault{
	name: "messages lost, doubled, late, garbage", lasts: 15 * time.Second,
	make: func(t *testing.T, s *tableScene) {
		s.relay.disturb(.2)
		s.poisonQueues(t)
	},
	heal: func(_ *testing.T, s *tableScene) { s.relay.disturb(0) },
	also: func(t *testing.T, s *tableScene, o *tableOutcome) {
		// The table may be read, or not: a later change makes up for a lost one of the same item.
		if strings.HasPrefix(s.relay.done(), "0 lost") || o.learned.old == 0 || o.learned.bad < len(garbage)/2*len(s.proxies) {
			t.Errorf("nothing of it happened: %+v", o.learned)
		}
	},
}

// TestTableFaults is the quick part of the suite of limits as data: `make faults-aws` runs
// all of it. It does not wait for the digests of the control plane, which come when nothing
// changes.
func TestTableFaults(t *testing.T) {
	quick := disturbed
	quick.lasts = 2 * time.Second
	quick.heal = func(t *testing.T, s *tableScene) {
		s.relay.disturb(0)
		s.tellDigests(t)
	}
	runTableFaults(t, quick)
}
