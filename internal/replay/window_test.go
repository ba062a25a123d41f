package replay

import (
	"container/heap"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/accesslog"
)

// TestWindowOrder checks that lines leave the window in the order of their times, and those of one
// time in that of the log.
func TestWindowOrder(t *testing.T) {
	var h timeHeap
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 200 {
		heap.Push(&h, heldLine{accesslog.Entry{Line: i + 1, Time: noon.Add(time.Duration(i*5%7) * time.Second)}, 1})
	}
	a := heap.Pop(&h).(heldLine)
	for len(h) > 0 {
		b := heap.Pop(&h).(heldLine)
		if b.Time.Before(a.Time) || b.Time.Equal(a.Time) && b.Line < a.Line {
			t.Errorf("line %d of %v comes before line %d of %v", a.Line, a.Time, b.Line, b.Time)
		}
		a = b
	}
}
