package server

import (
	"crypto/tls"
	"net"
	"runtime"
	"runtime/metrics"
	"testing"
)

// wrappedListener accepts connections that an event loop does not take.
type wrappedListener struct{ net.Listener }

type wrappedConn struct{ net.Conn }

func (l wrappedListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return wrappedConn{nc}, nil
}

// stackBytes returns the memory of the stacks of all goroutines that run.
func stackBytes() int64 {
	runtime.GC() // halves stacks of which little is used
	runtime.GC() // releases those of ended goroutines
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// TestHandshakeStack checks that a connection does not keep the stack that its handshake
// needed. Reading records needs a stack of the next size, which is twice as large; a
// handshake needs one of the size after that at least. The clients have no goroutines.
func TestHandshakeStack(t *testing.T) {
	const conns = 300
	serverSide, clientSide := selfSigned(t)
	grown := func(ln net.Listener, dial func(addr string) (net.Conn, error)) int64 {
		r := startOn(t, Options{}, ln)
		defer r.stop()
		before := stackBytes()
		for range conns {
			nc, err := dial(r.addr)
			if err != nil {
				t.Fatal(err)
			}
			newClient(t, nc).ping()
		}
		return (stackBytes() - before) / conns
	}
	plain := grown(wrappedListener{listen(t)}, func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) })
	encrypted := grown(tls.NewListener(listen(t), serverSide), func(addr string) (net.Conn, error) {
		return tls.Dial("tcp", addr, clientSide)
	})
	if encrypted > 5*plain/2 {
		t.Errorf("a connection has a stack of %d bytes, by TLS of %d", plain, encrypted)
	}
}
