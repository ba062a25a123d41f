package grpcserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The methods of the tests.
const (
	echo  = "/test/Echo"  // answers with the request
	fail  = "/test/Fail"  // answers with an error
	crash = "/test/Crash" // panics
	slow  = "/test/Slow"  // answers like echo, but after a value of the channel
	watch = "/test/Watch" // sends the request again and again, as often as its first byte says, and waits
	once  = "/test/Once"  // sends the request and ends
)

// testOptions are options with the methods of the tests. Batches gets the number of calls of each call of
// echo.
func testOptions(batches chan<- int) Options { return slowOptions(batches, nil) }

// slowOptions are testOptions whose method slow waits for a value of may.
func slowOptions(batches chan<- int, may <-chan struct{}) Options {
	return Options{
		Unary: map[string]Unary{
			echo: func(b *Batch) {
				if batches != nil {
					batches <- len(b.Calls)
				}
				for _, c := range b.Calls {
					c.Reply = append(c.Reply, c.Message...)
				}
			},
			fail: func(b *Batch) {
				for _, c := range b.Calls {
					c.Err = status.Error(codes.NotFound, "100% été\n")
				}
			},
			crash: func(*Batch) { panic("crash") },
			slow: func(b *Batch) {
				for _, c := range b.Calls {
					b.Go([]*Call{c}, func() {
						if <-may; string(c.Message) == "crash" {
							panic("crash")
						}
						c.Reply = append(c.Reply, c.Message...)
					})
				}
			},
		},
		Streaming: map[string]Streaming{once: func(_ context.Context, message []byte, send func([]byte) error) error {
			if string(message) == "crash" {
				panic("crash")
			}
			return send(message)
		}, watch: func(ctx context.Context, message []byte, send func([]byte) error) error {
			for range message[0] {
				if err := send(message); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return ctx.Err()
		}},
		ShutdownTimeout: 5 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
}

// serve serves until the test ends. End makes it end earlier.
func serve(t testing.TB, opts Options, l net.Listener) (s *Server, end func()) {
	t.Helper()
	s = New(opts)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := s.unfinished.Load(); n != 0 {
			t.Errorf("%d bytes are counted as unfinished after the end", n)
		}
	})
	t.Cleanup(end)
	return s, end
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rawClient speaks HTTP/2 frame by frame.
type rawClient struct {
	testing.TB
	net.Conn
	*http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	decoder *hpack.Decoder
}

// newRawClient returns a client that has sent the preface and its settings.
func newRawClient(t testing.TB, conn net.Conn, settings ...http2.Setting) *rawClient {
	t.Helper()
	c := &rawClient{TB: t, Conn: conn, Framer: http2.NewFramer(conn, conn), decoder: hpack.NewDecoder(4096, nil)}
	c.AllowIllegalWrites = true
	c.encoder = hpack.NewEncoder(&c.block)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c.must(c.WriteSettings(settings...))
	return c
}

// dial returns a client that has the server's settings, too.
func dial(t testing.TB, addr net.Addr, settings ...http2.Setting) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	c := newRawClient(t, conn, settings...)
	c.want("SETTINGS", "WINDOW_UPDATE 0 983041", "SETTINGS ack")
	return c
}

func (c *rawClient) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// fields returns header fields, compressed.
func (c *rawClient) fields(list ...string) []byte {
	c.block.Reset()
	for i := 0; i < len(list); i += 2 {
		c.must(c.encoder.WriteField(hpack.HeaderField{Name: list[i], Value: list[i+1]}))
	}
	return bytes.Clone(c.block.Bytes())
}

// requestFields are the header fields of a request of gRPC.
func requestFields(path string, further ...string) []string {
	return append([]string{":method", "POST", ":scheme", "http", ":path", path, "content-type", "application/grpc", "te", "trailers"}, further...)
}

// begin sends the header fields of a request.
func (c *rawClient) begin(id uint32, path string, further ...string) {
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.fields(requestFields(path, further...)...), EndHeaders: true}))
}

// request sends a request.
func (c *rawClient) request(id uint32, path, message string) {
	c.begin(id, path)
	c.must(c.WriteData(id, true, prefixed(message)))
}

// prefixed returns a message with its prefix.
func prefixed(message string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// next returns a description of the next frame.
func (c *rawClient) next() string {
	f, err := c.ReadFrame()
	if err != nil {
		if errors.Is(err, io.EOF) || strings.Contains(err.Error(), "reset") {
			return "EOF"
		}
		return err.Error()
	}
	id := f.Header().StreamID
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return "SETTINGS ack"
		}
		return "SETTINGS"
	case *http2.WindowUpdateFrame:
		return fmt.Sprintf("WINDOW_UPDATE %d %d", id, f.Increment)
	case *http2.HeadersFrame:
		text := fmt.Sprintf("HEADERS %d", id)
		fields, err := c.decoder.DecodeFull(f.HeaderBlockFragment())
		c.must(err)
		for _, field := range fields {
			text += " " + field.Name + "=" + field.Value
		}
		return strings.ReplaceAll(text, ":status=200 content-type=application/grpc", "OK") + ended(f.StreamEnded())
	case *http2.DataFrame:
		data := f.Data()
		if len(data) > 40 {
			return fmt.Sprintf("DATA %d %d bytes", id, len(data)) + ended(f.StreamEnded())
		}
		return fmt.Sprintf("DATA %d %q", id, data) + ended(f.StreamEnded())
	case *http2.RSTStreamFrame:
		return fmt.Sprintf("RST_STREAM %d %s", id, f.ErrCode)
	case *http2.PingFrame:
		return fmt.Sprintf("PING %q ack=%v", f.Data[:], f.IsAck())
	case *http2.GoAwayFrame:
		return fmt.Sprintf("GOAWAY %d %s", f.LastStreamID, f.ErrCode)
	default:
		return fmt.Sprint(f)
	}
}

func ended(is bool) string {
	if is {
		return " END"
	}
	return ""
}

// want checks the next frames.
func (c *rawClient) want(frames ...string) {
	c.Helper()
	for _, want := range frames {
		if got := c.next(); got != want {
			c.Fatalf("got %s, want %s", got, want)
		}
	}
}
