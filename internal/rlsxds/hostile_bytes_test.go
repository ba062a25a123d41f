package rlsxds

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/test/bufconn"
)

// accept plays with each connection to the network until stop is called.
func (n *network) accept(t testing.TB, play func(conn net.Conn)) (stop func()) {
	l := bufconn.Listen(64 << 10)
	n.mu.Lock()
	n.listener = l
	n.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			play(conn)
			_ = conn.Close()
		}
	}()
	return func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	}
}

// spoken plays a server of HTTP/2 that greets and reads, and answers the first request by what answer writes.
func spoken(answer func(f *http2.Framer)) func(conn net.Conn) {
	return func(conn net.Conn) {
		preface := make([]byte, len(http2.ClientPreface))
		f := http2.NewFramer(conn, conn)
		if _, err := io.ReadFull(conn, preface); err != nil || f.WriteSettings() != nil {
			return
		}
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() && f.WriteSettingsAck() != nil {
					return
				}
			case *http2.HeadersFrame:
				answer(f)
			}
		}
	}
}

// headers returns the header fields of an answer.
func headers() []byte {
	var b bytes.Buffer
	encoder := hpack.NewEncoder(&b)
	_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	_ = encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/grpc"})
	return b.Bytes()
}

// data returns an answer of header fields, and of bytes that may be a part of a message.
func data(message []byte) func(f *http2.Framer) {
	return func(f *http2.Framer) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers(), EndHeaders: true})
		_ = f.WriteData(1, false, message)
	}
}

// hostileBytes are the behaviours of servers that do not speak gRPC, or stop in the middle of it.
var hostileBytes = map[string]func(conn net.Conn){
	"a close":  func(net.Conn) {},
	"HTTP/1.1": func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") },
	"garbage":  func(conn net.Conn) { _, _ = conn.Write(bytes.Repeat([]byte("\xff\x00x"), 1<<20)) },
	"a frame of 16 MiB": spoken(func(f *http2.Framer) {
		_ = f.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<24-1))
	}),
	"an end of the connection": spoken(func(f *http2.Framer) { _ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("go away")) }),
	"a reset of the stream":    spoken(func(f *http2.Framer) { _ = f.WriteRSTStream(1, http2.ErrCodeRefusedStream) }),
	"endless header fields": spoken(func(f *http2.Framer) {
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers()})
		for err == nil {
			err = f.WriteContinuation(1, false, bytes.Repeat([]byte("\x00\x01a\x01b"), 1000))
		}
	}),
	"a part of a message":     spoken(data([]byte("\x00\x00\x10\x00\x00part"))),
	"a part of a prefix":      spoken(data([]byte("\x00\x00"))),
	"a message of 4 GiB":      spoken(data([]byte("\x00\xff\xff\xff\xffx"))),
	"a compressed message":    spoken(data([]byte("\x01\x00\x00\x00\x01x"))),
	"no message, only frames": spoken(data(nil)),
}

// TestHostileBytes checks that each behaviour changes nothing and fills no log, and that the next server's
// resources are taken.
func TestHostileBytes(t *testing.T) {
	for name, play := range hostileBytes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := new(network)
				stop := n.accept(t, play)
				c, a, log := newClient(t, n, Options{})
				defer start(t, c)()
				time.Sleep(20 * time.Minute)
				a.expect(t, 0)
				if got := c.Status(); got.Loaded || got.Accepted+got.Rejected != 0 {
					t.Errorf("the status is %+v", got)
				}
				if dials := len(n.dialed()); dials < 2 || dials > 120 { // once in 10 seconds at most
					t.Errorf("%d connections in 20 minutes", dials)
				}
				if text := log.String(); strings.Count(text, "\n") > 2*20*maxLines || len(text) > 512<<10/3 {
					t.Errorf("the log has %d lines, %d bytes: %.2000s", strings.Count(text, "\n"), len(text), text)
				}
				stop()
				n.serve(t, script{play: func(s serverStream) error {
					if err := s.Send(answer("good", "g", "good")); err != nil {
						return err
					}
					return keep(s)
				}})
				time.Sleep(10 * time.Minute)
				a.expect(t, 1, "good")
			})
		})
	}
}
