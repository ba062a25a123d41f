package simulation

import "container/heap"

// schedule holds what is still to happen, in the order of its time, and of its
// coming where times are equal: so that a run can be repeated. It holds what the
// simulated parties have begun and no more.
type schedule struct {
	events eventHeap
	count  uint64
}

// event is something that happens at an instant, in microseconds since the start.
type event struct {
	at    int64
	order uint64
	do    func()
}

// add has something happen at an instant.
func (s *schedule) add(at int64, do func()) {
	s.count++
	heap.Push(&s.events, event{at: at, order: s.count, do: do})
}

// next removes and returns what happens next, if anything does until then.
func (s *schedule) next(until int64) (event, bool) {
	if len(s.events) == 0 || s.events[0].at > until {
		return event{}, false
	}
	return heap.Pop(&s.events).(event), true
}

type eventHeap []event

func (h eventHeap) Len() int      { return len(h) }
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(e any)   { *h = append(*h, e.(event)) }

func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}

func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = event{}
	*h = (*h)[:last]
	return e
}
