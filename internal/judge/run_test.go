package judge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

const (
	// labs is the number of histories that run at a time.
	labs = 2
	// historyDecisions is the number of decisions of a history.
	historyDecisions = 400
	// mostWrong is the number of wrong histories after which a test gives up.
	mostWrong = 3
	// shrinkTime bounds the time for making a wrong history smaller.
	shrinkTime = 30 * time.Second
)

// TestHistories runs random histories on all stores for JUDGE_TIME (20s), or until
// JUDGE_DECISIONS were compared. JUDGE_SEED repeats a run, or one history of it.
func TestHistories(t *testing.T) {
	j := newJudge(t)
	var wg sync.WaitGroup
	for range labs {
		l := newLab(t)
		wg.Go(func() {
			for n := j.begin(); n > 0; n = j.begin() {
				j.history(l, n)
			}
		})
	}
	wg.Wait()
	j.summarize()
}

// judge is a run of many histories. It is safe for concurrent use.
type judge struct {
	t         *testing.T
	seed      uint64
	only      int64 // the history to run, 0 for all
	decisions int64 // to compare, 0 for no end
	began     time.Time
	end       time.Time

	begun, compared, denied, cached, settled atomic.Int64
	mu                                       sync.Mutex       // guards the fields below
	byStore                                  map[string]int64 // decisions
	wrong                                    int              // histories
	reported                                 time.Time        // time of the last progress report
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	now := time.Now()
	j := &judge{t: t, seed: uint64(now.UnixNano()), began: now, reported: now, byStore: map[string]int64{}}
	if s := os.Getenv("JUDGE_SEED"); s != "" {
		seed, only, _ := strings.Cut(s, "/")
		j.seed = uint64(number(t, "JUDGE_SEED", seed))
		if only != "" {
			j.only = number(t, "JUDGE_SEED", only)
		}
	}
	length := 20 * time.Second
	if s := os.Getenv("JUDGE_TIME"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	if s := os.Getenv("JUDGE_DECISIONS"); s != "" {
		j.decisions = number(t, "JUDGE_DECISIONS", s)
		length = 24 * time.Hour
	}
	j.end = now.Add(length)
	t.Logf("JUDGE_SEED=%d", j.seed)
	return j
}

func number(t *testing.T, name, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return n
}

// begin returns the number of the next history, 0 when there is none.
func (j *judge) begin() int64 {
	n := j.begun.Add(1)
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.wrong >= mostWrong || j.decisions > 0 && j.compared.Load() >= j.decisions || time.Now().After(j.end):
		return 0
	case j.only == 0:
		return n
	case n > 1:
		return 0
	}
	return j.only
}

// history draws a history, runs it on all stores and compares the answers.
func (j *judge) history(l *lab, n int64) {
	r := rand.New(rand.NewPCG(j.seed, uint64(n)))
	h, err := drawHistory(r, historyDecisions)
	if err != nil {
		j.t.Error(err)
		return
	}
	if cut := undecided(&h.history, h.answers); cut >= 0 {
		h.steps, h.answers = h.steps[:cut], h.answers[:cut]
	}
	want := withBuckets(referenceEngine{}.run(&h.history), h.answers)
	for _, run := range l.draw(r) {
		got := run.answers(&h.history)
		j.count(run.store, h, got)
		if m := compare(&h.history, want, got, run.engine.way); m != nil {
			j.report(h, run, n, m)
			return
		}
	}
	j.compared.Add(h.decisions())
	j.progress()
}

func (j *judge) count(store string, h *drawn, got []answer) {
	decisions := int64(0)
	for i := range got {
		switch {
		case !got[i].decided:
			if h.steps[i].kind != advance && h.steps[i].kind != reload {
				j.settled.Add(1)
			}
			continue
		case got[i].source.String() == "cache":
			j.cached.Add(1)
		case !got[i].allowed:
			j.denied.Add(1)
		}
		decisions++
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.byStore[store] += decisions
}

// report makes a wrong history small, writes it to keptFolder, and fails the test.
func (j *judge) report(h *drawn, r run, n int64, m *mismatch) {
	j.mu.Lock()
	j.wrong++
	j.mu.Unlock()
	small, repeats := smallest(h, r, shrinkTime)
	if !repeats {
		j.t.Errorf("JUDGE_SEED=%d/%d, %s, and not when it was run again: step %d, %s: %s", j.seed, n, r, m.step, h.steps[m.step].String(), m.text)
		return
	}
	text := describe(small, r)
	j.t.Errorf("JUDGE_SEED=%d/%d, kept in %s:\n%s", j.seed, n, keep(j.t, text), text)
}

// describe returns a history with a run's answers and, in parentheses, the right ones.
func describe(h *history, r run) string {
	want, got := truth(h), r.answers(h)
	m := compare(h, want, got, r.engine.way)
	note := func(i int) string {
		switch {
		case i >= len(got) || h.steps[i].kind == advance || h.steps[i].kind == reload:
			return ""
		case got[i].String() == want[i].String():
			return got[i].String()
		}
		return got[i].String() + " (" + want[i].String() + ")"
	}
	text := fmt.Sprintf("# %s\n", r)
	if m != nil {
		text += fmt.Sprintf("# %s: %s\n", h.steps[m.step].String(), m.text)
	}
	return text + h.text(note)
}

// progress logs the progress of the run from time to time.
func (j *judge) progress() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if time.Since(j.reported) < 15*time.Second {
		return
	}
	j.reported = time.Now()
	compared := j.compared.Load()
	j.t.Logf("%s: %d decisions compared, %.0f a second, %d wrong histories", time.Since(j.began).Round(time.Second), compared, float64(compared)/time.Since(j.began).Seconds(), j.wrong)
}

func (j *judge) summarize() {
	j.t.Logf("JUDGE_SEED=%d: %d decisions in %d histories compared with the reference in %s, %d wrong histories",
		j.seed, j.compared.Load(), j.begun.Load()-labs, time.Since(j.began).Round(time.Second), j.wrong)
	j.t.Logf("answered: %d by memory (twice each), %d by redis, %d by the cluster; %d of them denied by a store, %d by the deny cache; %d settlements, refunds and resets",
		j.byStore["memory"], j.byStore["redis"], j.byStore["cluster"], j.denied.Load(), j.cached.Load(), j.settled.Load())
	if j.compared.Load() == 0 && j.only == 0 {
		j.t.Error("nothing was compared")
	}
}
