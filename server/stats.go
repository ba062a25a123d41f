package server

import "sync/atomic"

// Stats are the counts of a Server since it was created. Each is read separately, so they
// are not a snapshot of one instant.
type Stats struct {
	Connections    int64 // open now
	Total          int64 // accepted since the start
	Rejected       int64 // rejected because of MaxConns
	Handshakes     int64 // ended in the TLS handshake
	ProtocolErrors int64 // closed because of invalid input
	TimedOut       int64 // closed because of missing input
	Retired        int64 // closed because of MaxAge
	SlowReaders    int64 // closed because replies were not read
	Evicted        int64 // closed because all together held Options.MaxBuffered
	Panics         int64 // closed because the session panicked
	AcceptErrors   int64 // failures to accept, each followed by a pause
}

type counters struct {
	connections, total, rejected, handshakes, protocolErrors,
	timedOut, retired, slowReaders, evicted, panics, acceptErrors atomic.Int64
}

// Stats returns the present counts. It is safe for concurrent use.
func (s *Server) Stats() Stats {
	return Stats{
		Connections:    s.count.connections.Load(),
		Total:          s.count.total.Load(),
		Rejected:       s.count.rejected.Load(),
		Handshakes:     s.count.handshakes.Load(),
		ProtocolErrors: s.count.protocolErrors.Load(),
		TimedOut:       s.count.timedOut.Load(),
		Retired:        s.count.retired.Load(),
		SlowReaders:    s.count.slowReaders.Load(),
		Evicted:        s.count.evicted.Load(),
		Panics:         s.count.panics.Load(),
		AcceptErrors:   s.count.acceptErrors.Load(),
	}
}
