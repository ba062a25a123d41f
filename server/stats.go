package server

import "sync/atomic"

// Stats are the counts of a Server since it was made. Each is read by itself:
// together they are not one instant.
type Stats struct {
	Connections    int64 // open now
	Total          int64 // accepted, ever
	Rejected       int64 // turned away because there were MaxConns
	ProtocolErrors int64 // closed because of what they sent
	TimedOut       int64 // closed because of what they did not send
	Retired        int64 // closed because they were old
	SlowReaders    int64 // closed because they did not read their replies
	Evicted        int64 // closed because all together held Options.MaxBuffered
	Panics         int64 // closed because their session panicked
	AcceptErrors   int64 // failures to accept, each followed by a pause
}

type counters struct {
	connections, total, rejected, protocolErrors,
	timedOut, retired, slowReaders, evicted, panics, acceptErrors atomic.Int64
}

// Stats returns the counts of now. Any number of goroutines may call it.
func (s *Server) Stats() Stats {
	return Stats{
		Connections:    s.count.connections.Load(),
		Total:          s.count.total.Load(),
		Rejected:       s.count.rejected.Load(),
		ProtocolErrors: s.count.protocolErrors.Load(),
		TimedOut:       s.count.timedOut.Load(),
		Retired:        s.count.retired.Load(),
		SlowReaders:    s.count.slowReaders.Load(),
		Evicted:        s.count.evicted.Load(),
		Panics:         s.count.panics.Load(),
		AcceptErrors:   s.count.acceptErrors.Load(),
	}
}
