package reference

// Release returns the slots of a request, and none of its units. It returns 1 when that
// is done, 2 when it was done before, and 0 when nothing is held.
func (m *Model) Release(now int64, tenant, id string) int {
	r := m.records[recordID{acquire, tenant, id}]
	if answer, settled := r.settled(now); settled {
		return answer
	}
	held := m.heldBy(now, r)
	if len(held) == 0 && r.hadSlots() {
		return unknown
	}
	for _, b := range held {
		delete(b.held, r.holder)
	}
	r.finish(now)
	return done
}

// Renew holds the slots of a request for a TTL from now on, for as long as before if it
// is 0. It returns 1 when that is done, and 0 when nothing is held.
//
// Not documented: the time may also become shorter, and a request whose slots were
// released holds nothing, so that the answer is 0 and not 2.
func (m *Model) Renew(now int64, tenant, id string, ttlMS int64) int {
	r := m.records[recordID{acquire, tenant, id}]
	switch answer, settled := r.settled(now); {
	case settled && answer == alreadyDone:
		return unknown
	case settled:
		return answer
	}
	held := m.heldBy(now, r)
	if len(held) == 0 && r.hadSlots() {
		return unknown
	}
	if ttlMS != 0 {
		r.ttl = ttlMS * millisecond
	}
	r.until = now + r.ttl
	for _, b := range held {
		b.held[r.holder] = r.until
	}
	return done
}

// heldBy returns the buckets of which a request holds a slot.
func (m *Model) heldBy(now int64, r *record) []*slots {
	var held []*slots
	for _, t := range r.taken {
		if e, found := m.buckets[t.key]; found {
			if b, ok := e.bucket.(*slots); ok && b.holds(now, r.holder) {
				held = append(held, b)
			}
		}
	}
	return held
}

func (r *record) hadSlots() bool {
	for _, t := range r.taken {
		if t.limit.concurrent() {
			return true
		}
	}
	return false
}
