package simulation

// schedule holds the events to come, ordered by time, and by insertion for equal times,
// so that a run can be repeated.
type schedule struct {
	heap  []event // none is earlier than the one at the middle of its index
	count uint64
}

// event is something that happens at an instant, in microseconds since the start.
type event struct {
	at    int64
	order uint64
	do    func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// add schedules do at an instant.
func (s *schedule) add(at int64, do func()) {
	s.count++
	s.heap = append(s.heap, event{at: at, order: s.count, do: do})
	for i := len(s.heap) - 1; i > 0 && s.heap[i].before(&s.heap[(i-1)/2]); i = (i - 1) / 2 {
		s.heap[i], s.heap[(i-1)/2] = s.heap[(i-1)/2], s.heap[i]
	}
}

// next removes and returns the next event, if there is one until then.
func (s *schedule) next(until int64) (event, bool) {
	if len(s.heap) == 0 || s.heap[0].at > until {
		return event{}, false
	}
	first, last := s.heap[0], len(s.heap)-1
	s.heap[0], s.heap[last] = s.heap[last], event{}
	s.heap = s.heap[:last]
	s.sink()
	return first, true
}

// sink moves the first event to its place.
func (s *schedule) sink() {
	for i := 0; ; {
		least := 2*i + 1
		if least >= len(s.heap) {
			return
		}
		if right := least + 1; right < len(s.heap) && s.heap[right].before(&s.heap[least]) {
			least = right
		}
		if !s.heap[least].before(&s.heap[i]) {
			return
		}
		s.heap[i], s.heap[least] = s.heap[least], s.heap[i]
		i = least
	}
}
