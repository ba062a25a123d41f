package cluster

import (
	"time"

	"github.com/limitgate/limitgate/internal/latency"
)

// Traffic counts the calls that a master answered.
type Traffic struct {
	// Batches is the number of batches that were answered, Calls that of the scripts in them, and
	// Checks that of the calls of callers. Queued is the number of those that wait now.
	Batches, Calls, Checks, Queued int64
	// RoundTrip is the time from sending a batch to its last reply. Of very many batches it may
	// miss some.
	RoundTrip *latency.Histogram
}

// traffic counts the batches of a pipeline. The pipeline's mutex guards it, but for roundTrip.
type traffic struct {
	batches, calls, checks int64
	timer                  latency.Timer
	untimed                int64
	roundTrip              latency.Histogram
}

// count counts a batch whose replies have been read.
func (t *traffic) count(b *batch) {
	t.batches++
	t.calls += int64(len(b.commands))
	t.checks += int64(len(b.callers))
	t.untimed++
	if t.timer.Due(b.sentAt) {
		t.roundTrip.Observe(time.Since(b.sentAt), t.untimed)
		t.untimed = 0
	}
}

// measure returns the present counts.
func (p *pipeline) measure() Traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &p.traffic
	return Traffic{t.batches, t.calls, t.checks, int64(p.shared.calls + p.alone.calls), &t.roundTrip}
}
