package cluster

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// lateRefunds bounds the denied requests whose refunds wait for Run: what does
// not fit is lost and counted.
const lateRefunds = 1024

// Refund gives the units of items back to their buckets, once. When the deadline
// has passed, because the denial came from a slow store, Run does it a little
// later. What fails is lost to the buckets and counted.
func (s *Store) Refund(at limit.Moment, items []limit.Item) { s.refundBy(at.Deadline(), items) }

func (s *Store) refundBy(deadline time.Time, items []limit.Item) {
	if time.Now().Before(deadline) {
		s.refund(deadline, items)
		return
	}
	kept := slices.Clone(items)
	for i := range kept {
		kept[i].Name, kept[i].Once = slices.Clone(kept[i].Name), slices.Clone(kept[i].Once) // the caller uses its memory again
	}
	select {
	case s.late <- kept:
	default:
		s.counts.refundsLost.Add(int64(len(kept)))
	}
}

// refundLate gives back what waits, until ctx ends.
func (s *Store) refundLate(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case items := <-s.late:
			s.refund(time.Now().Add(s.opts.IOTimeout), items)
		}
	}
}

func (s *Store) refund(deadline time.Time, items []limit.Item) {
	calls := refundCalls(items)
	done := s.ask(deadline, verbRefund, items, calls)
	s.counts.refundsLost.Add(int64(len(calls) - done))
}

// refundCalls returns a call for each item, but one for all those behind each other
// whose answer is kept under the same key: they are given back together.
func refundCalls(items []limit.Item) (calls []limit.Call) {
	for i := range items {
		last := len(calls) - 1
		if last >= 0 && items[i].Once != nil && bytes.Equal(items[i].Once, calls[last].Once) {
			calls[last].Last = i + 1
			continue
		}
		calls = append(calls, limit.Call{First: i, Last: i + 1, Once: items[i].Once})
	}
	return calls
}
