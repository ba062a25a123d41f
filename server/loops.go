package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
)

// maxLoops bounds the number of event loops: each has two descriptors, of which a process has a
// thousand by default.
const maxLoops = 256

// Loops are event loops: each is a goroutine that reads and writes many plain TCP
// connections, those of clients and those to other servers. There are none on other systems
// than Linux, nor in the zero Loops. Loops is safe for concurrent use.
type Loops struct {
	loops []*eventLoop
	next  atomic.Int64 // the number of sockets that were adopted
}

// NewLoops returns n event loops, or half as many as there are processors if n is 0: one for
// each would compete with the goroutines that serve TLS. They serve while Run runs, which
// releases them. The error is that of a system without descriptors left.
func NewLoops(n int) (*Loops, error) {
	if n == 0 {
		n = max(1, runtime.GOMAXPROCS(0)/2)
	}
	l := &Loops{}
	for range min(n, maxLoops) {
		p, err := newLoop()
		if errors.Is(err, errors.ErrUnsupported) {
			break
		}
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("start event loops: %w", err)
		}
		l.loops = append(l.loops, p)
	}
	return l, nil
}

// Run runs the loops until ctx ends, and then closes the connections that they still have.
// The servers that use them must have returned.
func (l *Loops) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, p := range l.loops {
		wg.Go(p.run)
	}
	<-ctx.Done()
	for _, p := range l.loops {
		p.stop()
	}
	wg.Wait()
	return nil
}

// Close releases loops that Run is not called for.
func (l *Loops) Close() {
	for _, p := range l.loops {
		p.end()
	}
}

// adopt passes a client's connection to a loop, and reports whether it took it.
func (l *Loops) adopt(from *listener, tcp *net.TCPConn, id int64) bool {
	if len(l.loops) == 0 {
		return false
	}
	return l.loops[id%int64(len(l.loops))].adopt(from, tcp, id)
}

// Adopt takes over a connection to another server: only the socket may be used from then on. On
// an error, errors.ErrUnsupported if there are no loops, conn is as it was.
func (l *Loops) Adopt(conn *net.TCPConn) (*Socket, error) {
	if len(l.loops) == 0 {
		return nil, errors.ErrUnsupported
	}
	p := l.loops[(l.next.Add(1)-1)%int64(len(l.loops))]
	return p.newSocket(conn)
}
