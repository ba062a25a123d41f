package grpcserver

import (
	"bytes"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// scriptConn is a connection whose client has sent all at once, and takes all output.
type scriptConn struct {
	net.Conn
	in *bytes.Reader
}

func (c *scriptConn) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *scriptConn) Write(b []byte) (int, error)      { return len(b), nil }
func (c *scriptConn) Close() error                     { return nil }
func (c *scriptConn) SetDeadline(time.Time) error      { return nil }
func (c *scriptConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptConn) SetWriteDeadline(time.Time) error { return nil }

// FuzzConn: no input ends the process or is counted wrongly, and each call of a method has a message.
func FuzzConn(f *testing.F) {
	for _, path := range []string{echo, watch, fail, once, slow, "/test/None"} {
		f.Add(seed(path))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		may := make(chan struct{})
		close(may)
		opts := slowOptions(nil, may)
		opts.Log = slog.New(slog.DiscardHandler)
		s := New(opts)
		c := s.add(&scriptConn{in: bytes.NewReader(append([]byte(http2.ClientPreface), sent...))})
		var running sync.WaitGroup
		running.Go(c.run)
		running.Wait()
		if s.unfinished.Load() != 0 || c.unfinished != 0 || c.flow.blocked != 0 || c.abandoned != 0 || c.streaming != 0 || len(c.streams) != 0 || len(s.conns) != 0 {
			t.Errorf("left: %d and %d bytes, %d watchers, %d streams, %d connections", s.unfinished.Load(), c.unfinished, c.streaming, len(c.streams), len(s.conns))
		}
	})
}

// seed returns frames of a client that calls a method.
func seed(path string) []byte {
	var frames, block bytes.Buffer
	framer, encoder := http2.NewFramer(&frames, nil), hpack.NewEncoder(&block)
	list := requestFields(path)
	for i := 0; i < len(list); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: list[i], Value: list[i+1]})
	}
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	_ = framer.WriteData(1, false, prefixed("hello")[:4])
	_ = framer.WriteData(1, true, prefixed("hello")[4:])
	_ = framer.WriteWindowUpdate(1, 3)
	_ = framer.WriteRSTStream(1, http2.ErrCodeCancel)
	_ = framer.WritePing(true, pingData)
	return frames.Bytes()
}
