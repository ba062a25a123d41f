package httpapi

import (
	"net"
	"runtime"

	"github.com/valyala/fasthttp"
)

// largeBody is the size from which a body costs much more than a usual one.
const largeBody = 4 << 10

// takeTurn waits until a request may be answered, and returns a function that ends its turn. A connection whose input is
// always there never waits: it would keep a processor for as long as the scheduler lets it, some 10 ms. So other goroutines
// run between the requests of such a connection. Of connections that send further requests ahead of an answer, which
// gateways do not, one request is answered at a time: all of them together use one processor, and one round trip to the store.
func (s *Server) takeTurn(ctx *fasthttp.RequestCtx) (end func()) {
	end = func() {}
	ahead := false
	if c := connOf(ctx.Conn()); c != nil && c.begun.Add(1) > 1 {
		ahead = true
		s.pipelined.Lock()
		end = s.pipelined.Unlock
	}
	if ahead || ctx.Request.Header.ContentLength() >= largeBody {
		runtime.Gosched()
	}
	return end
}

// connOf returns the bounded connection below another one, or nil.
func connOf(c net.Conn) *conn {
	for {
		over, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			bounded, _ := c.(*conn)
			return bounded
		}
		c = over.NetConn()
	}
}
