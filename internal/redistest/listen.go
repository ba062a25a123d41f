package redistest

import (
	"net"
	"sync"
	"testing"
)

// Listen returns the address of a server that runs serve on each connection.
func Listen(tb testing.TB, serve func(net.Conn)) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	var conns sync.WaitGroup
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				serve(c)
				_ = c.Close()
			})
		}
	}()
	tb.Cleanup(func() {
		_ = l.Close()
		<-done
		conns.Wait()
	})
	return l.Addr().String()
}
