package httpapi

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

const (
	// largeBody is the size in bytes from which a body costs much more than a usual one: 34 of the shortest requests have it.
	largeBody = 512
	// maxAhead bounds the requests that wait for their turn, as they were sent ahead of an answer. Gateways send none
	// so, and the connections of MaxConns beside these stay free for them.
	maxAhead = 512
	// maxLarge bounds the requests with a large body that are decided at a time: a list of the most requests holds half a MiB
	// meanwhile. Others wait with their bodies, of which connections have one each.
	maxLarge = 32
)

// turns bound the requests that are answered at a time, so that few connections do not keep processors and memory from others.
type turns struct {
	ahead   sync.Mutex    // held by the request that is answered of those that connections send ahead of an answer
	waiting atomic.Int64  // those for ahead, and the one that holds it
	large   chan struct{} // has an item for each request with a large body that is answered
}

// turn is that of one request. It is for one goroutine.
type turn struct {
	of                 *turns
	ahead              bool // it was sent ahead of an answer
	hasAhead, hasLarge bool // it holds ahead, and an item of large
}

// takeTurn waits until a request may be answered, and reports whether it may be. A connection whose input is
// always there never waits: it would keep a processor for as long as the scheduler lets it, some 10 ms. So other goroutines
// run between the requests of such a connection. Of connections that send further requests ahead of an answer, which
// gateways do not, one request is answered at a time: all of them together use one processor, and one round trip to the store.
func (s *Server) takeTurn(ctx *fasthttp.RequestCtx) (t turn, ok bool) {
	t.of = &s.turns
	c := connOf(ctx.Conn())
	t.ahead = c != nil && c.begun.Add(1) > 1
	if !t.resume() {
		return turn{}, false
	}
	if t.ahead || ctx.Request.Header.ContentLength() >= largeBody {
		runtime.Gosched()
	}
	return t, true
}

// pause lets others have their turn, until resume: the next bytes of a body may be late.
func (t *turn) pause() {
	if t.hasAhead {
		t.hasAhead = false
		t.of.ahead.Unlock()
		t.of.waiting.Add(-1)
	}
}

// resume waits for the turn, and reports whether it has come: it does not wait behind maxAhead others.
func (t *turn) resume() bool {
	if !t.ahead {
		return true
	}
	if t.of.waiting.Add(1) > maxAhead {
		t.of.waiting.Add(-1)
		return false
	}
	t.of.ahead.Lock()
	t.hasAhead = true
	return true
}

// takeLarge waits until a request with a body of some size may be decided.
func (t *turn) takeLarge(size int) {
	if size >= largeBody {
		t.of.large <- struct{}{}
		t.hasLarge = true
	}
}

// end ends the turn.
func (t *turn) end() {
	t.pause()
	if t.hasLarge {
		<-t.of.large
	}
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
