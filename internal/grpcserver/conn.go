package grpcserver

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Bounds of one connection.
const (
	// maxStreams bounds the requests that are under way. An Envoy has one connection for each worker.
	maxStreams = 256
	// maxHeaderList bounds the header fields of a request, in bytes as HTTP/2 counts them.
	maxHeaderList = 16 << 10
	// readBuffer is the size of the buffer for input, and so of the input whose requests are answered together.
	// A frame has at most half of it.
	readBuffer = 32 << 10
	// receiveWindow is how many bytes of messages may be on their way. maxUnfinished bounds the bytes that are
	// kept, so that the window need not be small.
	receiveWindow = 1 << 20
	// writeTimeout bounds the wait for a client that does not read.
	writeTimeout = 10 * time.Second
	// beginTimeout bounds the time until a connection has begun to speak HTTP/2.
	beginTimeout = 10 * time.Second
	// keptBuffer is the size up to which buffers are kept for the next request.
	keptBuffer = 1 << 10
	// keptOut is the size up to which the buffer for output is kept.
	keptOut = 32 << 10
)

// conn is a connection.
type conn struct {
	server *Server
	socket net.Conn // below TLS
	// interrupted is set to make the goroutine of run look at its deadlines, and at Server.draining. Begun is set
	// when begin has ended: before, nothing is interrupted.
	interrupted, begun atomic.Bool
	accepted           time.Time

	// The fields below belong to the goroutine of run.
	net    net.Conn // socket, or TLS above it
	in     *bufio.Reader
	fields fieldReader
	armed  time.Time // the read deadline in force
	batch  Batch     // the memory of the present one

	mu      sync.Mutex    // guards the fields below, and the writing side of framer
	framer  *http2.Framer // reads from in, writes to out
	out     bytes.Buffer
	encoder *hpack.Encoder // writes to block
	block   bytes.Buffer
	flow    flow
	streams map[uint32]*stream
	round   []*stream // those that have arrived whole, and whose methods are not called yet
	free    []*stream // for reuse
	lastID  uint32    // of the streams that the client has opened
	// unfinished is the number of bytes of requests that have not arrived whole.
	unfinished int64
	// streaming is the number of streams of methods of Options.Streaming, and abandoned that of streams which
	// the client has ended while their methods go on.
	streaming, abandoned int
	ending               ending
	writeErr             error // the first one
	methods              sync.WaitGroup
}

func newConn(s *Server, nc net.Conn) *conn {
	return &conn{server: s, socket: nc, net: nc, accepted: time.Now(), streams: map[uint32]*stream{}, flow: newFlow()}
}

// interrupt makes the goroutine of run look at its deadlines, and at Server.draining. It is safe for concurrent use.
func (c *conn) interrupt() {
	c.interrupted.Store(true)
	if c.begun.Load() {
		_ = c.socket.SetReadDeadline(time.Unix(1, 0))
	}
}

// run serves the connection until it ends.
func (c *conn) run() {
	defer c.server.remove(c)
	defer func() {
		_ = c.socket.Close()
		c.mu.Lock()
		for _, s := range c.streams {
			c.drop(s)
		}
		c.mu.Unlock()
		c.methods.Wait()
	}()
	if c.begin() != nil {
		return
	}
	c.begun.Store(true)
	for {
		err := c.await()
		if err == nil {
			err = c.readFrames()
		}
		c.answerRound()
		if err = cmp.Or(err, c.advance()); err != nil {
			c.goAway(err)
			return
		}
	}
}

// begin makes the connection speak HTTP/2.
func (c *conn) begin() error {
	_ = c.socket.SetDeadline(c.accepted.Add(beginTimeout))
	if creds := c.server.creds; creds != nil {
		secured, _, err := creds.ServerHandshake(c.socket)
		if err != nil {
			return err
		}
		c.net = secured
	}
	c.in = bufio.NewReaderSize(c.net, readBuffer)
	c.framer = http2.NewFramer(&c.out, c.in)
	c.framer.SetReuseFrames()
	c.framer.SetMaxReadFrameSize(maxFrame)
	c.encoder = hpack.NewEncoder(&c.block)
	c.fields.init()
	c.ending.init(&c.server.opts, c.accepted)
	if err := c.readPreface(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := errors.Join(
		c.framer.WriteSettings(
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: prefixLen + MaxMessage},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeaderList},
		),
		c.framer.WriteWindowUpdate(0, receiveWindow-initialWindow),
		c.write(),
	)
	if err != nil {
		return err
	}
	f, err := c.framer.ReadFrame()
	if err != nil {
		return err
	}
	settings, ok := f.(*http2.SettingsFrame)
	if !ok {
		return errPreface
	}
	_ = c.socket.SetDeadline(time.Time{})
	return cmp.Or(c.onSettings(settings), c.write())
}

var errPreface = errors.New("the connection does not begin as HTTP/2 does")

// readPreface reads the first bytes of a client. Nothing is written before them: a client of another protocol could
// not read it.
func (c *conn) readPreface() error {
	for n := 1; n <= len(http2.ClientPreface); n++ { // such a client may wait after fewer bytes
		got, err := c.in.Peek(n)
		if err != nil {
			return err
		}
		if got[n-1] != http2.ClientPreface[n-1] {
			return errPreface
		}
	}
	_, err := c.in.Discard(len(http2.ClientPreface))
	return err
}

// await waits until a frame has arrived whole. Deadlines that pass meanwhile take effect.
func (c *conn) await() error {
	for {
		due := c.deadline()
		if c.interrupted.Swap(false) || !due.IsZero() && !time.Now().Before(due) {
			if err := c.onDeadline(); err != nil {
				return err
			}
			continue
		}
		if c.frameArrived() {
			return nil
		}
		if !due.Equal(c.armed) {
			c.armed = due
			_ = c.socket.SetReadDeadline(due)
		}
		if c.interrupted.Load() { // its deadline may have been overwritten
			continue
		}
		_, err := c.in.Peek(c.in.Buffered() + 1)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			c.armed = time.Unix(1, 0) // that of interrupt, or as good as that
		} else if err != nil {
			return err
		}
	}
}

// frameArrived reports whether the buffer has a whole frame, or the header of one that is refused.
func (c *conn) frameArrived() bool {
	n := c.in.Buffered()
	if n < frameHeader {
		return false
	}
	h, _ := c.in.Peek(frameHeader)
	length := int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	return length > maxFrame || n >= frameHeader+length
}

const (
	// frameHeader is the length of the header of a frame.
	frameHeader = 9
	// maxFrame is the length of the longest frame, which is HTTP/2's default.
	maxFrame = 16 << 10
)

// readFrames handles the frames that have arrived. Requests that are whole become the round.
func (c *conn) readFrames() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.frameArrived() && c.out.Len() <= maxOut {
		h, _ := c.in.Peek(frameHeader)
		fields := http2.FrameType(h[3]) == http2.FrameHeaders
		f, err := c.framer.ReadFrame()
		if err == nil {
			err = c.onFrame(f)
			fields = false
		}
		var of http2.StreamError
		switch {
		case !errors.As(err, &of):
		case fields || of.StreamID > c.lastID: // without these fields, later ones have no meaning
			err = http2.ConnectionError(of.Code)
		default:
			c.reset(of.StreamID, of.Code)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes the output. The mutex must be held: no goroutine has output for the connection meanwhile.
func (c *conn) write() error {
	if c.writeErr == nil && c.out.Len() > 0 {
		_ = c.socket.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, c.writeErr = c.net.Write(c.out.Bytes())
		if c.net != c.socket { // TLS writes while it reads, too
			_ = c.socket.SetWriteDeadline(time.Time{})
		}
	}
	if c.out.Reset(); c.out.Cap() > keptOut {
		c.out = bytes.Buffer{}
	}
	return c.writeErr
}

// jitter returns a duration that differs by at most a tenth, so that connections which began together do
// not end together.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d)) //nolint:gosec // it guards no secret
}
