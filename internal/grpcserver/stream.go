package grpcserver

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// MaxMessage bounds a message, in bytes.
	MaxMessage = 256 << 10
	// prefixLen is the length of what precedes a message: whether it is compressed, and its length.
	prefixLen = 5
	// maxUnfinished bounds the messages of a connection that have not arrived whole. While those of all
	// connections are beyond maxUnfinishedOfAll, a connection has unfinishedShare.
	maxUnfinished      = 4 << 20
	maxUnfinishedOfAll = 64 << 20
	unfinishedShare    = 64 << 10
	// MaxCall bounds the time from the begin of a request until it has arrived whole, and that until the client
	// has room for the reply. An Envoy waits 20 ms unless its filter has another timeout.
	MaxCall = 10 * time.Second
	// maxStreaming bounds the streams of methods of Options.Streaming of a connection, each of which has a
	// goroutine.
	maxStreaming = 16
)

// stream is a request with its answer. The mutex of its connection guards it; while a method runs, the call
// belongs to the method.
type stream struct {
	id        uint32
	path      string    // of the method, and "" if there is none
	unary     Unary     // nil for a method of Options.Streaming
	streaming Streaming // nil for a unary method
	until     time.Time // by when the client must have sent the request, or made room for the reply
	data      []byte    // the message behind its prefix, as much as has arrived
	counted   int64     // in unfinished
	// ended reports that the client has sent all.
	ended bool

	// calling reports that a unary method has the call.
	calling bool
	call    Call
	// cancel ends a method of Options.Streaming; nil for a unary one.
	cancel context.CancelFunc

	httpStatus string // of the answer, with err, its status
	err        error
	// window is how many bytes of messages the client takes, and rest are those that wait for room.
	window int64
	rest   []byte
	// begun reports that the header fields of the answer are sent, and trailing that its status follows the
	// rest.
	begun, trailing bool
}

// The errors of requests that no method sees. Clients know the codes from other servers of gRPC.
var (
	errInternal    = status.Error(codes.Internal, "internal error")
	errMethod      = status.Error(codes.Unimplemented, "unknown method")
	errEncoding    = status.Error(codes.Unimplemented, "compressed messages are not supported")
	errCompressed  = status.Error(codes.Internal, "the message is compressed, and the request names no encoding")
	errNoMessage   = status.Error(codes.Internal, "the request has no message, or a part of one")
	errTwoMessages = status.Error(codes.Internal, "the request has more than one message")
	errLarge       = status.Errorf(codes.ResourceExhausted, "a message has at most %d bytes", MaxMessage)
	errUnfinished  = status.Error(codes.ResourceExhausted, "too many messages have not arrived whole")
	errTime        = status.Errorf(codes.DeadlineExceeded, "the request did not arrive whole within %s", MaxCall)
	errHeaders     = status.Errorf(codes.ResourceExhausted, "the header fields of a request have at most %d bytes", maxHeaderList)
	errStreaming   = status.Errorf(codes.ResourceExhausted, "a connection has at most %d streams of messages", maxStreaming)
	errBlocked     = status.Errorf(codes.ResourceExhausted, "more than %d bytes of replies wait for the client", maxBlocked)
	errEnding      = status.Error(codes.Unavailable, "the connection is ending")
)

// onData adds data to a request.
func (c *conn) onData(s *stream, data []byte, ended bool) {
	c.setUnfinished(s, s.counted+int64(len(data)))
	s.data, s.ended = append(s.data, data...), ended
	whole, err := s.check()
	switch {
	case err != nil:
		c.refuse(s, err)
	case ended:
		if !whole {
			c.refuse(s, errNoMessage)
			return
		}
		if s.unary != nil { // a streaming method keeps its message
			c.setUnfinished(s, 0)
		}
		c.round = append(c.round, s)
	case c.unfinished > maxUnfinished || c.unfinished > unfinishedShare && c.server.unfinished.Load() > maxUnfinishedOfAll:
		c.refuse(s, errUnfinished)
	}
}

// setUnfinished sets how many bytes of a request are counted as those of one that has not arrived whole.
func (c *conn) setUnfinished(s *stream, n int64) {
	c.unfinished += n - s.counted
	c.server.unfinished.Add(n - s.counted)
	s.counted = n
}

// check reports whether the message of a request has arrived whole.
func (s *stream) check() (whole bool, err error) {
	if len(s.data) == 0 {
		return false, nil
	}
	if s.data[0] != 0 {
		return false, errCompressed
	}
	if len(s.data) < prefixLen {
		return false, nil
	}
	length := int64(binary.BigEndian.Uint32(s.data[1:]))
	switch got := int64(len(s.data) - prefixLen); {
	case length > MaxMessage:
		return false, errLarge
	case got > length:
		return false, errTwoMessages
	default:
		return got == length, nil
	}
}

// open returns a new stream, which is one of the connection's.
func (c *conn) open(id uint32) (s *stream) {
	if n := len(c.free); n > 0 {
		s, c.free = c.free[n-1], c.free[:n-1]
	} else {
		s = &stream{}
	}
	s.id, s.window, s.until = id, c.flow.initial, time.Now().Add(MaxCall)
	c.streams[id] = s
	return s
}

// drop forgets a stream, whose client gets nothing more.
func (c *conn) drop(s *stream) {
	delete(c.streams, s.id)
	c.setUnfinished(s, 0)
	c.flow.blocked -= int64(len(s.rest))
	switch {
	case s.cancel != nil: // its goroutine uses it
		c.streaming--
		s.cancel()
	case s.calling: // reply recycles it
		c.abandoned++
	default:
		if i := slices.Index(c.round, s); i >= 0 {
			c.round = slices.Delete(c.round, i, i+1)
		}
		c.recycle(s)
	}
}

// maxFree bounds the streams that are kept for reuse.
const maxFree = 64

// recycle keeps the memory of a stream for the next one.
func (c *conn) recycle(s *stream) {
	data, reply := s.data[:0], s.call.Reply[:0]
	if cap(data) > keptBuffer {
		data = nil
	}
	if cap(reply) > keptBuffer {
		reply = nil
	}
	*s = stream{data: data, call: Call{Reply: reply}}
	if len(c.free) < maxFree {
		c.free = append(c.free, s)
	}
}
