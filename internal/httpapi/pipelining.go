package httpapi

import (
	"net"
	"runtime"

	"github.com/valyala/fasthttp"
)

// takeTurn lets other goroutines run before a request is answered, and returns a function that ends its turn. A connection
// whose input is always there never waits: it would keep a processor for as long as the scheduler lets it, some 10 ms. Of
// connections that send further requests ahead of an answer, which gateways do not, one request is answered at a time:
// all of them together use one processor.
func (s *Server) takeTurn(ctx *fasthttp.RequestCtx) (end func()) {
	end = func() {}
	if c := connOf(ctx.Conn()); c != nil && c.begun.Add(1) > 1 {
		s.pipelined.Lock()
		end = s.pipelined.Unlock
	}
	runtime.Gosched()
	return end
}

// connOf returns the bounded connection below another one, or nil.
func connOf(c net.Conn) *conn {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = over.NetConn()
	}
	bounded, _ := c.(*conn)
	return bounded
}
