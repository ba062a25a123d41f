package instances

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errTest = errors.New("read cards: none left")

// step is something that happens to a count, and what it is afterwards.
type step struct {
	what string // tells, fails, out or back
	n    int
	want int
}

// TestHealthy: the count follows its source while the store answers. While it does
// not, the count falls to a part of the last one at most.
func TestHealthy(t *testing.T) {
	for name, row := range map[string]struct {
		ceiling int
		steps   []step
	}{
		"both directions":       {3, []step{{"tells", 3, 3}, {"tells", 9, 9}, {"tells", 1, 1}, {"tells", 2, 2}}},
		"nobody told anything":  {3, []step{{"fails", 0, 1}, {"out", 0, 1}, {"back", 0, 1}}},
		"the source fails":      {3, []step{{"tells", 5, 5}, {"fails", 0, 5}, {"fails", 0, 5}, {"tells", 4, 4}}},
		"none and less":         {3, []step{{"tells", 5, 5}, {"tells", 0, 5}, {"tells", -7, 5}, {"tells", 6, 6}}},
		"remembered":            {3, []step{{"out", 0, 1}, {"fails", 6, 6}, {"fails", 2, 6}, {"back", 0, 6}, {"tells", 3, 3}}},
		"half while out":        {3, []step{{"tells", 10, 10}, {"out", 0, 10}, {"tells", 5, 5}, {"back", 0, 5}}},
		"nearly all while out":  {3, []step{{"tells", 10, 10}, {"out", 0, 10}, {"tells", 1, 4}, {"back", 0, 1}}},
		"slowly while out":      {3, []step{{"tells", 9, 9}, {"out", 0, 9}, {"tells", 5, 5}, {"tells", 2, 3}, {"tells", 1, 3}, {"back", 0, 1}}},
		"down and out again":    {3, []step{{"tells", 9, 9}, {"out", 0, 9}, {"tells", 1, 3}, {"back", 0, 1}, {"out", 0, 1}, {"tells", 1, 1}}},
		"up while out":          {3, []step{{"tells", 2, 2}, {"out", 0, 2}, {"tells", 8, 8}, {"tells", 1, 1}}},
		"up while out, and up":  {3, []step{{"tells", 2, 2}, {"out", 0, 2}, {"tells", 8, 8}, {"back", 0, 8}, {"out", 0, 8}, {"tells", 1, 3}}},
		"fails while out":       {3, []step{{"tells", 9, 9}, {"out", 0, 9}, {"fails", 0, 9}, {"back", 0, 9}}},
		"a store out at first":  {3, []step{{"out", 0, 1}, {"tells", 6, 6}, {"tells", 2, 2}, {"back", 0, 2}}},
		"never down":            {1, []step{{"tells", 9, 9}, {"out", 0, 9}, {"tells", 1, 9}, {"back", 0, 1}}},
		"a ceiling of nothing":  {0, []step{{"tells", 9, 9}, {"out", 0, 9}, {"tells", 1, 9}}},
		"a ceiling out of need": {100, []step{{"tells", 9, 9}, {"out", 0, 9}, {"tells", 1, 1}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			answers := true
			c := New(Options{Ceiling: row.ceiling, Answers: func() bool { return answers }})
			if c.Healthy() != 1 {
				t.Errorf("at first there are %d", c.Healthy())
			}
			for i, s := range row.steps {
				switch s.what {
				case "tells":
					c.tell(s.n, nil)
				case "fails":
					c.tell(s.n, errTest)
				default:
					answers = s.what == "back"
					c.settle()
				}
				time.Sleep(fallTime) // what fell has fallen
				c.settle()
				if got := c.Healthy(); got != s.want {
					t.Fatalf("%s: step %d, %s %d: %d, want %d", name, i, s.what, s.n, got, s.want)
				}
			}
		})
	}
}

// TestFallsBeforeTheStore: what takes proxies away may take the store moments later;
// the count had not fallen for the ceiling then.
func TestFallsBeforeTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := true
		c := New(Options{Ceiling: 3, Answers: func() bool { return answers }})
		c.tell(30, nil)
		c.tell(1, nil)
		time.Sleep(fallTime - time.Second)
		c.settle()
		answers = false
		c.settle()
		time.Sleep(time.Hour)
		c.settle()
		if c.Healthy() != 10 {
			t.Errorf("of 30, 1 is told shortly before the store is out: %d, want 10", c.Healthy())
		}
	})
}

// told is a source that a test speaks through.
type told chan func(tell func(int, error))

func (s told) Run(ctx context.Context, tell func(int, error)) {
	for {
		select {
		case say := <-s:
			say(tell)
		case <-ctx.Done():
			return
		}
	}
}

func (s told) n(n int) { s <- func(tell func(int, error)) { tell(n, nil) } }

// TestFollowsAStoreThatIsBack: the source told its number while the store was out,
// and no more; the count falls to it when the store is back.
func TestFollowsAStoreThatIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out atomic.Bool
		source := make(told)
		c := New(Options{Source: source, Ceiling: 3, Answers: func() bool { return !out.Load() }})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		source.n(9)
		out.Store(true)
		source.n(1)
		time.Sleep(time.Hour)
		if c.Healthy() != 3 {
			t.Errorf("%d after an hour without a store, want 3", c.Healthy())
		}
		out.Store(false)
		time.Sleep(fallTime + 2*settleInterval)
		synctest.Wait()
		if c.Healthy() != 1 {
			t.Errorf("%d with the store, want 1", c.Healthy())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestReports: the log says once that a source fails, and once that it works again;
// one that does and does not in turn is not told each time.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := New(Options{Name: "cards", Log: slog.New(slog.NewTextHandler(&log, nil))})
		lines := func(want ...string) {
			t.Helper()
			got := strings.Split(strings.TrimSpace(log.String()), "\n")
			if len(got) != len(want) {
				t.Fatalf("got\n%s\nwant %d lines", &log, len(want))
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) || !strings.Contains(got[i], "source=cards") {
					t.Errorf("got %s, want %s", got[i], want[i])
				}
			}
			log.Reset()
		}
		c.tell(4, nil)
		for range 100 {
			c.tell(0, errTest)
		}
		if st := c.Status(); st.Err == nil || st.Errors != 100 || st.Healthy != 4 || st.Source != "cards" {
			t.Errorf("got %+v", st)
		}
		c.tell(5, nil)
		lines(`level=WARN msg="how many proxies there are cannot be learnt, the last number stays" source=cards instances=4 error="read cards: none left"`,
			`level=INFO msg="how many proxies there are is known again" source=cards instances=5`)
		if st := c.Status(); st.Err != nil || st.Errors != 100 {
			t.Errorf("got %+v", st)
		}
		for range 100 {
			c.tell(0, errTest)
			c.tell(5, nil)
		}
		if log.Len() > 0 {
			t.Errorf("it goes on: %s", &log)
		}
		time.Sleep(reportPause)
		c.tell(0, nil)
		c.tell(5, nil)
		lines("it counts none, and this proxy is one", "known again")
	})
}

// TestAwait: it ends with the first word of the source, whatever that is, or without
// one in the end.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, say := range map[time.Duration]func(*Count){
			0:           func(c *Count) { c.tell(1, nil); c.tell(2, nil) },
			time.Second: func(c *Count) { time.AfterFunc(time.Second, func() { c.tell(0, errTest) }) },
			awaitLimit:  func(*Count) {},
		} {
			c := New(Options{})
			say(c)
			began := time.Now()
			c.Await(t.Context())
			if got := time.Since(began); got != want {
				t.Errorf("it took %s, want %s", got, want)
			}
		}
		ended, end := context.WithCancel(t.Context())
		end()
		began := time.Now()
		New(Options{}).Await(ended)
		if got := time.Since(began); got != 0 {
			t.Errorf("it waits for %s when all is over", got)
		}
	})
}

func TestStatic(t *testing.T) {
	c := New(Options{Source: Static(7)})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	c.Await(t.Context())
	if c.Healthy() != 7 {
		t.Errorf("there are %d, want 7", c.Healthy())
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func BenchmarkHealthy(b *testing.B) {
	c := New(Options{})
	c.tell(3, nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if c.Healthy() != 3 {
				b.Error("it is not 3")
			}
		}
	})
}
