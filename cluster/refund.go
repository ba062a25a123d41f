package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// lateRefunds bounds the refunds of a node that wait for its goroutine: what does
// not fit is lost and counted.
const lateRefunds = 1024

// Refund gives the units of items back to their buckets, once. When the deadline
// has passed, because the denial came from a slow store, Run does it a little
// later, for each node by itself. What fails is lost to the buckets and counted.
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
		kept.Name, kept.RecordKey = slices.Clone(kept.Name), slices.Clone(kept.RecordKey) // the caller uses its memory again
		late[n] = append(late[n], kept)
	}
	for n, kept := range late {
		if n == nil || !n.refundLater(kept) {
			s.counts.refundsLost.Add(int64(len(kept)))
		}
	}
}

// refundLater has items given back by the node's goroutine, or reports false.
func (n *node) refundLater(items []limit.Item) bool {
	select {
	case n.late <- items:
		return true
	default:
		return false
	}
}

// refundLate gives back what waits for a node, until ctx ends.
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

// loseLate counts what still waits for a node that is gone.
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

// refundCalls returns a call for each item, but one for all those behind each other
// whose answer is kept under the same key: they are given back together.
func refundCalls(items []limit.Item) (calls []limit.Call) {
	for first := 0; first < len(items); {
		last := first + limit.RefundCall(items[first:])
		calls = append(calls, limit.Call{First: first, Last: last, RecordKey: items[first].RecordKey})
		first = last
	}
	return calls
}
