package proxy

import (
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/logthrottle"
)

// unreachedCause is why a store is not reached, as far as an operator does something else about it.
type unreachedCause struct {
	kind cluster.ErrorKind
	of   string // the part of the network that fails, or ""
}

func causeOf(err error) unreachedCause {
	kind := cluster.KindOf(err)
	var name *net.DNSError
	switch {
	case kind != cluster.KindNetwork:
		return unreachedCause{kind: kind}
	case errors.As(err, &name):
		return unreachedCause{kind, "name"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreachedCause{kind, "refused"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return unreachedCause{kind, "closed"}
	}
	return unreachedCause{kind: kind}
}

// unreachedReason is the cause for which a store is not reached.
type unreachedReason struct {
	known  bool
	logged unreachedCause         // that of the start, or of the last line
	seen   map[unreachedCause]int // looks since then, by their causes
	quiet  logthrottle.Throttle
}

// isAnother reports whether an error is to be logged: its cause is another one than that of the last line, and two looks since then
// had it. So a store that comes back on its way has no line.
func (r *unreachedReason) isAnother(err error) bool {
	if err == nil {
		return false
	}
	cause := causeOf(err)
	if !r.known {
		r.known, r.logged, r.seen = true, cause, map[unreachedCause]int{}
	}
	if r.seen[cause]++; r.seen[cause] < 2 || cause == r.logged || !r.quiet.Allow() {
		return false
	}
	r.logged = cause
	clear(r.seen)
	return true
}
