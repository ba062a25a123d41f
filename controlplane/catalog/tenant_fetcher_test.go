package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// shelf is a table of which items are read one by one.
type shelf struct {
	mu    sync.Mutex // guards the fields below
	items map[string]table.Item
	gets  int
	fails bool
}

func (s *shelf) Get(_ context.Context, key string) (table.Item, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if s.fails {
		return table.Item{}, false, errors.New("AWS is away")
	}
	it, ok := s.items[key]
	return it, ok, nil
}

// fail makes later reads fail, or not.
func (s *shelf) fail(fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = fails
}

// took returns the number of reads since its last call.
func (s *shelf) took() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.gets
	s.gets = 0
	return n
}

// TestTenantFetcher: a tenant without a message is read. A tenant that does not exist
// is not looked up again for a minute. However many are made up, ten a second are read.
func TestTenantFetcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := loaded(t, shared, free, pro)
		var log strings.Builder
		c.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
		s := &shelf{items: map[string]table.Item{"TENANT#new": item("TENANT#new", 3, `{"plan": "pro"}`)}}
		l := NewTenantFetcher(c, s)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.Run(ctx) }()
		for range 100 {
			l.Request("new")
			l.Request("nobody")
		}
		time.Sleep(time.Second)
		wantPlan(t, c, "new", "pro")
		wantPlan(t, c, "nobody", "free")
		if n := s.took(); n != 2 {
			t.Errorf("two tenants are looked for %d times", n)
		}
		time.Sleep(lookupTTL)
		l.Request("nobody")
		time.Sleep(time.Second)
		if n := s.took(); n != 1 {
			t.Errorf("after its time it is looked for %d times", n)
		}
		for i := range 100_000 { // in ten seconds
			l.Request(fmt.Sprint("made up ", i))
			time.Sleep(100 * time.Microsecond)
		}
		if n := s.took(); n < 99 || n > 101 || l.known.Len() > lookupKnown {
			t.Errorf("of those made up are %d looked for in ten seconds, %d known", n, l.known.Len())
		}
		time.Sleep(time.Minute)
		if n := s.took(); n > lookupWaiting {
			t.Errorf("of those made up %d waited", n)
		}
		log.Reset()
		s.fail(true)
		for i := range 20 {
			l.Request(fmt.Sprint("away ", i))
		}
		time.Sleep(3 * time.Second)
		if n, text := s.took(), log.String(); n != 20 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "AWS is away") {
			t.Errorf("asked %d times, the log says\n%s", n, text)
		}
		s.fail(false)
		l.Request("after")
		time.Sleep(time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestRequestAllocatesNothing: while the queue is full, requests for other tenants
// allocate nothing.
func TestRequestAllocatesNothing(t *testing.T) {
	l := NewTenantFetcher(loaded(t, shared, free), &shelf{})
	for i := range lookupWaiting {
		l.Request(fmt.Sprint(i))
	}
	if n := testing.AllocsPerRun(100, func() { l.Request("one more") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
