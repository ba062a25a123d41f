package server

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTimerHeap: whatever the order in which deadlines are set, moved and removed,
// each connection is popped once its last deadline has come, and not before.
func TestTimerHeap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var q timerHeap
		conns := make([]epollConn, 6)
		want := map[*epollConn]time.Time{}
		now := time.UnixMilli(0)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			c := &conns[rapid.IntRange(0, len(conns)-1).Draw(rt, "conn")]
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0, 1:
				due := now.Add(time.Duration(rapid.IntRange(0, 50).Draw(rt, "in")) * time.Millisecond)
				q.set(c, due)
				want[c] = due
			case 2:
				q.set(c, time.Time{})
				delete(want, c)
			case 3:
				q.remove(c)
				delete(want, c)
			default:
				now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(rt, "passed")) * time.Millisecond)
				popAll(rt, &q, now, want)
			}
			if len(q) > len(conns) {
				rt.Fatalf("%d entries for %d connections", len(q), len(conns))
			}
		}
		popAll(rt, &q, now.Add(time.Second), want)
		if len(want) != 0 || len(q) != 0 || !q.next().IsZero() {
			rt.Fatalf("%d deadlines and %d entries are left", len(want), len(q))
		}
	})
}

// popAll pops all timers that are due and compares them with want.
func popAll(rt *rapid.T, q *timerHeap, now time.Time, want map[*epollConn]time.Time) {
	for c := q.pop(now); c != nil; c = q.pop(now) {
		due, ok := want[c]
		if !ok || now.Before(due) {
			rt.Fatalf("popped at %v what is due at %v (%v)", now, due, ok)
		}
		delete(want, c)
	}
	for _, due := range want {
		if !now.Before(due) {
			rt.Fatalf("not popped at %v what was due at %v", now, due)
		}
		if next := q.next(); next.IsZero() || next.After(due) {
			rt.Fatalf("next is %v, with a deadline at %v", next, due)
		}
	}
}
