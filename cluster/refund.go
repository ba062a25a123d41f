package cluster

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// lateRefunds bounds the denied requests whose refunds wait for Run: what does
// not fit is lost and counted.
const lateRefunds = 1024

// Refund gives the units of items back to their buckets, once. When the deadline
// has passed, because the denial came from a slow store, Run does it a little
// later. What fails is lost to the buckets and counted.
func (s *Store) Refund(at limit.Moment, items []limit.Item) {
	if deadline := at.Deadline(); time.Now().Before(deadline) {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		s.refund(ctx, items)
		return
	}
	kept := slices.Clone(items)
	for i := range kept {
		kept[i].Name = slices.Clone(kept[i].Name) // the caller uses its memory again
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
			patient, cancel := context.WithTimeout(ctx, s.opts.IOTimeout)
			s.refund(patient, items)
			cancel()
		}
	}
}

func (s *Store) refund(ctx context.Context, items []limit.Item) {
	calls := make([]limit.Call, len(items))
	for i := range items {
		calls[i] = limit.Call{First: i, Last: i + 1}
	}
	var done atomic.Int64
	s.onOwners(items, calls, func(n *node, calls []limit.Call) {
		b := newBatch(s, n, s.scripts.refund)
		for _, c := range calls {
			group := items[c.First:c.Last]
			keys, args := refundArgs(group)
			b.add(group, keys, args)
		}
		b.run(ctx, func([]limit.Item, any) error {
			done.Add(1)
			return nil
		})
	})
	s.counts.refundsLost.Add(int64(len(items)) - done.Load())
}
