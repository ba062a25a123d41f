package simulation

// report is the record of a run. Instants are microseconds since its start, and breakers
// are those of the hurt shard.
type report struct {
	// broke is when the fault began, back when it was over, and end when the run
	// ended.
	broke, back, end int64
	probes           histogram
	opened, open     int   // times that a breaker left closed; those open in the end
	lastClosed       int64 // when the last of them closed
	lastBackstop     int64 // when the backstop decided last
}

// recovery returns the probes of the hurt shard after it was back.
func (r *report) recovery() histogram {
	h := make(histogram, len(r.probes))
	first := int(r.back / binTime)
	copy(h[min(first, len(h)):], r.probes[min(first, len(h)):])
	return h
}

// most returns the maximum of say over the tenants for which whom is true.
func (f *fleet) most(whom func(*tenant) bool, say func(*tenant) float64) float64 {
	most := 0.0
	for _, t := range f.tenants {
		if whom(t) {
			most = max(most, say(t))
		}
	}
	return most
}
