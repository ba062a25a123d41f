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

// step is an event for a count, and the count after it.
type step struct {
	what string // reports, fails, out or back
	n    int
	want int
}

// TestHealthy checks that the count follows its source while the store answers, and that
// it falls at most to a part of the last count otherwise.
func TestHealthy(t *testing.T) {
	for name, row := range map[string]struct {
		ceiling int
		steps   []step
	}{
		"both directions":       {3, []step{{"reports", 3, 3}, {"reports", 9, 9}, {"reports", 1, 1}, {"reports", 2, 2}}},
		"no number at all":      {3, []step{{"fails", 0, 1}, {"out", 0, 1}, {"back", 0, 1}}},
		"the source fails":      {3, []step{{"reports", 5, 5}, {"fails", 0, 5}, {"fails", 0, 5}, {"reports", 4, 4}}},
		"none and less":         {3, []step{{"reports", 5, 5}, {"reports", 0, 5}, {"reports", -7, 5}, {"reports", 6, 6}}},
		"remembered":            {3, []step{{"out", 0, 1}, {"fails", 6, 6}, {"fails", 2, 6}, {"back", 0, 6}, {"reports", 3, 3}}},
		"half while out":        {3, []step{{"reports", 10, 10}, {"out", 0, 10}, {"reports", 5, 5}, {"back", 0, 5}}},
		"nearly all while out":  {3, []step{{"reports", 10, 10}, {"out", 0, 10}, {"reports", 1, 4}, {"back", 0, 1}}},
		"slowly while out":      {3, []step{{"reports", 9, 9}, {"out", 0, 9}, {"reports", 5, 5}, {"reports", 2, 3}, {"reports", 1, 3}, {"back", 0, 1}}},
		"down and out again":    {3, []step{{"reports", 9, 9}, {"out", 0, 9}, {"reports", 1, 3}, {"back", 0, 1}, {"out", 0, 1}, {"reports", 1, 1}}},
		"up while out":          {3, []step{{"reports", 2, 2}, {"out", 0, 2}, {"reports", 8, 8}, {"reports", 1, 1}}},
		"up while out, and up":  {3, []step{{"reports", 2, 2}, {"out", 0, 2}, {"reports", 8, 8}, {"back", 0, 8}, {"out", 0, 8}, {"reports", 1, 3}}},
		"fails while out":       {3, []step{{"reports", 9, 9}, {"out", 0, 9}, {"fails", 0, 9}, {"back", 0, 9}}},
		"a store out at first":  {3, []step{{"out", 0, 1}, {"reports", 6, 6}, {"reports", 2, 2}, {"back", 0, 2}}},
		"never down":            {1, []step{{"reports", 9, 9}, {"out", 0, 9}, {"reports", 1, 9}, {"back", 0, 1}}},
		"a ceiling of nothing":  {0, []step{{"reports", 9, 9}, {"out", 0, 9}, {"reports", 1, 9}}},
		"a ceiling out of need": {100, []step{{"reports", 9, 9}, {"out", 0, 9}, {"reports", 1, 1}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			answers := true
			c := New(Options{Ceiling: row.ceiling, Answers: func() bool { return answers }})
			if c.Healthy() != 1 {
				t.Errorf("at first there are %d", c.Healthy())
			}
			for i, s := range row.steps {
				switch s.what {
				case "reports":
					c.logChange(s.n, nil)
				case "fails":
					c.logChange(s.n, errTest)
				default:
					answers = s.what == "back"
					c.settle()
				}
				time.Sleep(fallTime) // so that smaller numbers count
				c.settle()
				if got := c.Healthy(); got != s.want {
					t.Fatalf("%s: step %d, %s %d: %d, want %d", name, i, s.what, s.n, got, s.want)
				}
			}
		})
	}
}

// TestFallsBeforeTheStore checks that a fall shortly before the store fails does not
// lower the base of the ceiling: the event that removes proxies may affect the store
// moments later.
func TestFallsBeforeTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := true
		c := New(Options{Ceiling: 3, Answers: func() bool { return answers }})
		c.logChange(30, nil)
		c.logChange(1, nil)
		time.Sleep(fallTime - time.Second)
		c.settle()
		answers = false
		c.settle()
		time.Sleep(time.Hour)
		c.settle()
		if c.Healthy() != 10 {
			t.Errorf("30 and then 1 shortly before the store is out: %d, want 10", c.Healthy())
		}
	})
}

// manualSource is a source that a test controls.
type manualSource chan func(tell func(int, error))

func (s manualSource) Run(ctx context.Context, tell func(int, error)) {
	for {
		select {
		case call := <-s:
			call(tell)
		case <-ctx.Done():
			return
		}
	}
}

// n reports n, and returns when the report has been made.
func (s manualSource) n(n int) {
	done := make(chan struct{})
	s <- func(tell func(int, error)) {
		defer close(done)
		tell(n, nil)
	}
	<-done
}

// TestFollowsAStoreThatIsBack checks that the count falls to the source's number when the
// store is back, if the source reported it only while the store was out.
func TestFollowsAStoreThatIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out atomic.Bool
		source := make(manualSource)
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

// TestReports checks that the log has one line when a source fails, and one when it works
// again, and that a flapping source is not logged each time.
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
		c.logChange(4, nil)
		for range 100 {
			c.logChange(0, errTest)
		}
		if st := c.Status(); st.Err == nil || st.Errors != 100 || st.Healthy != 4 || st.Source != "cards" {
			t.Errorf("got %+v", st)
		}
		c.logChange(5, nil)
		lines(`level=WARN msg="cannot count instances, keeping the last number" source=cards instances=4 error="read cards: none left"`,
			`level=INFO msg="counting instances again" source=cards instances=5`)
		if st := c.Status(); st.Err != nil || st.Errors != 100 {
			t.Errorf("got %+v", st)
		}
		for range 100 {
			c.logChange(0, errTest)
			c.logChange(5, nil)
		}
		if log.Len() > 0 {
			t.Errorf("a flapping source is logged: %s", &log)
		}
		time.Sleep(reportPause)
		c.logChange(0, nil)
		c.logChange(5, nil)
		lines("the source counts no instances", "counting instances again")
	})
}

// TestReportsOfStore checks that a source which asks the store has no line before its first number, as long as the store does not
// answer, and one if it fails beside a store that does.
func TestReportsOfStore(t *testing.T) {
	var log bytes.Buffer
	answers := false
	c := New(Options{Name: "store", OfStore: true, Answers: func() bool { return answers }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	c.logChange(0, errTest)
	c.logChange(0, errTest)
	c.logChange(2, nil)
	if log.Len() > 0 {
		t.Errorf("a store that never answered has the lines\n%s", &log)
	}
	c.logChange(0, errTest)
	if n := strings.Count(log.String(), "keeping the last number"); n != 1 {
		t.Errorf("an outage has %d lines:\n%s", n, &log)
	}
	log.Reset()
	c = New(Options{Name: "store", OfStore: true, Answers: func() bool { return answers }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	c.logChange(0, errTest)
	answers = true
	c.logChange(0, errTest)
	c.logChange(0, errTest)
	if n := strings.Count(log.String(), "cannot count instances"); n != 1 {
		t.Errorf("a failure beside a store that answers has %d lines:\n%s", n, &log)
	}
}

// TestWaitFirst checks that WaitFirst ends with the first report of the source, whether
// number or error, or else after its limit.
func TestWaitFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, say := range map[time.Duration]func(*Count){
			0:           func(c *Count) { c.logChange(1, nil); c.logChange(2, nil) },
			time.Second: func(c *Count) { time.AfterFunc(time.Second, func() { c.logChange(0, errTest) }) },
			awaitLimit:  func(*Count) {},
		} {
			c := New(Options{})
			say(c)
			began := time.Now()
			c.WaitFirst(t.Context())
			if got := time.Since(began); got != want {
				t.Errorf("it took %s, want %s", got, want)
			}
		}
		ended, end := context.WithCancel(t.Context())
		end()
		began := time.Now()
		New(Options{}).WaitFirst(ended)
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
	c.WaitFirst(t.Context())
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
	c.logChange(3, nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if c.Healthy() != 3 {
				b.Error("it is not 3")
			}
		}
	})
}
