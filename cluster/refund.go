package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// lateRefunds bounds the late refunds that are queued for a node. Refunds beyond that are
// lost and counted.
const lateRefunds = 1024

// Refund returns the units of items to their buckets, once. If the deadline has passed,
// because the denial came from a slow store, Run refunds them a little later, each node
// separately. Failed refunds are lost to the buckets and counted.
func (s *Store) Refund(at limit.DecisionTime, items []limit.Item) { s.refundBy(at.Deadline(), items) }

func (s *Store) refundBy(deadline time.Time, items []limit.Item) {
	if time.Now().Before(deadline) {
		s.refund(deadline, items)
		return
	}
	top, late := s.top.Load(), map[*node][]limit.Item{}
	for i := range items {
		n := top.nodeOf(&items[i])
		kept := items[i]
		kept.Name, kept.RecordKey = slices.Clone(kept.Name), slices.Clone(kept.RecordKey) // the caller reuses its memory
		late[n] = append(late[n], kept)
	}
	for n, kept := range late {
		if n == nil || !n.refundLater(kept) {
			s.counts.refundsLost.Add(int64(len(kept)))
		}
	}
}

// refundLater queues items for refundLate. It reports false if the queue is full.
func (n *node) refundLater(items []limit.Item) bool {
	select {
	case n.late <- items:
		return true
	default:
		return false
	}
}

// refundLate refunds the queued items of a node until ctx ends.
func (s *Store) refundLate(ctx context.Context, n *node) {
	for {
		select {
		case <-ctx.Done():
			s.loseLate(n)
			return
		case items := <-n.late:
			s.refund(time.Now().Add(s.opts.IOTimeout), items)
			s.opts.Returned(names(items))
		}
	}
}

// loseLate counts the items that are still queued for a node that is gone.
func (s *Store) loseLate(n *node) {
	for {
		select {
		case items := <-n.late:
			s.counts.refundsLost.Add(int64(len(items)))
		default:
			return
		}
	}
}

// names returns the names of items.
func names(items []limit.Item) []string {
	all := make([]string, len(items))
	for i := range items {
		all[i] = string(items[i].Name)
	}
	return all
}

func (s *Store) refund(deadline time.Time, items []limit.Item) {
	calls := refundCalls(items)
	done := s.do(deadline, opRefund, items, calls)
	s.counts.refundsLost.Add(int64(len(calls) - done))
}

// refundCalls returns a call for each item, except that consecutive items with the same
// record key share one call: they are refunded together.
func refundCalls(items []limit.Item) (calls []limit.Call) {
	for first := 0; first < len(items); {
		last := first + limit.RefundCall(items[first:])
		calls = append(calls, limit.Call{First: first, Last: last, RecordKey: items[first].RecordKey})
		first = last
	}
	return calls
}
