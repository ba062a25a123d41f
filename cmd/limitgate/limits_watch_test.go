package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/table"
)

// script is a table with its first and later content, and the messages about it that are
// received in order; after them it ends the watch.
type script struct {
	items, later []table.Item
	scans        int
	received     []received
	end          context.CancelFunc
}

type received struct {
	messages []table.Message
	err      error
}

func (s *script) Scan(context.Context) ([]table.Item, error) {
	if s.scans++; s.scans > 1 {
		return s.later, nil
	}
	return s.items, nil
}

func (s *script) Receive(ctx context.Context) ([]table.Message, int, error) {
	if len(s.received) == 0 {
		s.end()
		return nil, 0, ctx.Err()
	}
	next := s.received[0]
	s.received = s.received[1:]
	return next.messages, 0, next.err
}

// TestWatchDecidesByVersion: repeated, late and foreign messages are not printed. Missed
// changes are found by the digests, or when the queue is lost.
func TestWatchDecidesByVersion(t *testing.T) {
	v1, v2, v3, v4 := *tenant(1, "ann", `{}`), *tenant(2, "bob", `{"plan":"gold"}`), *tenant(3, "ann", ""), *tenant(4, "ann", `{}`)
	of := func(items ...table.Item) (r received) {
		for i := range items {
			r.messages = append(r.messages, table.Message{Item: &items[i]})
		}
		return r
	}
	digest := func(items ...table.Item) received {
		var d table.Digest
		for i := range items {
			d.Add(&items[i])
		}
		return received{messages: []table.Message{{Digest: &d}}}
	}
	for what, row := range map[string]struct {
		received []received
		table    []table.Item // at the end
		want     string
		scans    int
	}{
		"in order":    {[]received{of(v2), of(v3, v4)}, nil, "1-2 2-3 3-4", 1},
		"twice":       {[]received{of(v2, v2), of(v2)}, nil, "1-2", 1},
		"out of time": {[]received{of(v3), of(v2), of(v1)}, nil, "1-3", 1},
		"no item":     {[]received{of(table.Item{Key: "note", Version: 9}, table.Item{Key: "TENANT#a"})}, nil, "", 1},
		"same digest": {[]received{digest(v1), digest(v1), digest(v1)}, []table.Item{v2}, "", 1},
		"missed once": {[]received{digest(v2), of(v2), digest(v2), digest(v3)}, []table.Item{v4}, "1-2", 1},
		"missed":      {[]received{digest(v2), digest(v2), {}}, []table.Item{v2}, "1-2", 2},
		"a new queue": {[]received{{err: table.ErrMissed}, of(v3)}, []table.Item{v2}, "1-2 2-3", 2},
		"an error":    {[]received{{err: errors.New("it is down")}, of(v2)}, nil, "1-2", 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var printed []string
			var stderr strings.Builder
			ctx, end := context.WithCancel(t.Context())
			s := &script{items: []table.Item{v1, {Key: "note"}}, later: row.table, received: row.received, end: end}
			w := &watcher{table: s, updates: s, stderr: &stderr}
			w.print = func(e *audit.Entry) { printed = append(printed, fmt.Sprintf("%d-%d", e.Before.Version, e.Version)) }
			code := w.watch(ctx, &environment{stderr: &stderr}, "it")
			if got := strings.Join(printed, " "); code != exitOK || got != row.want || s.scans != row.scans {
				t.Errorf("exit %d, printed %q after %d scans, want %q after %d", code, got, s.scans, row.want, row.scans)
			}
			if said := stderr.String(); !strings.HasPrefix(said, "limitgate: watching it, 1 items\n") || strings.Contains(said, "it is down; retrying") != (what == "an error") {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// TestPrintWatched: a reverted change by hand has a line that says so.
func TestPrintWatched(t *testing.T) {
	for _, row := range []struct {
		before, after *table.Item
		want          string
	}{
		{tenant(1, "ann", `{"plan":"a"}`), tenant(2, "control-plane", `{"plan":"a"}`), "change TENANT#a, version 1 by ann\n  the same item as before: a change by hand was reverted\n"},
		{tenant(1, "ann", `{"plan":"a"}`), tenant(3, "bob", `{"plan":"a"}`), "change TENANT#a, version 1 by ann\n  the same item as before\n"},
		{tenant(1, "ann", `{"plan":"a"}`), tenant(2, "bob", `{"plan":"b"}`), "change TENANT#a, version 1 by ann\n  - {plan: a}\n  + {plan: b}\n"},
		{nil, tenant(1, "bob", `{"plan":"b"}`), "add TENANT#a\n  + {plan: b}\n"},
	} {
		var out strings.Builder
		e := &audit.Entry{Key: row.after.Key, Actor: row.after.Actor, Version: row.after.Version, At: row.after.At, Before: row.before, After: row.after}
		printWatched(&out, e, false)
		if _, got, _ := strings.Cut(out.String(), "\n"); got != row.want {
			t.Errorf("got\n%swant\n%s", got, row.want)
		}
	}
}
