package grpcserver

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// answered are the frames of a reply of echo.
func answered(id, message string) []string {
	return []string{"HEADERS " + id + " OK", "DATA " + id + " " + message, "HEADERS " + id + " grpc-status=0 END"}
}

// ping is the ping behind the frames of a test, and still its answer.
var ping = [8]byte{'s', 't', 'i', 'l', 'l', ' ', 'u', 'p'}

const still = `PING "still up" ack=true`

// frameTest is a sequence of frames of a client, and the frames that answer it.
type frameTest struct {
	name string
	send func(c *rawClient)
	want []string
}

// requestTests are frames of requests, those that clients of gRPC send and those that the server refuses.
var requestTests = []frameTest{
	{"a request", func(c *rawClient) { c.request(1, echo, "hi") }, answered("1", `"\x00\x00\x00\x00\x02hi"`)},
	{
		"two requests, one after the other", func(c *rawClient) { c.request(1, echo, "a"); c.request(7, echo, "b") },
		append(answered("1", `"\x00\x00\x00\x00\x01a"`), answered("7", `"\x00\x00\x00\x00\x01b"`)...),
	},
	{"an empty message", func(c *rawClient) { c.request(1, echo, "") }, answered("1", `"\x00\x00\x00\x00\x00"`)},
	{
		"an error", func(c *rawClient) { c.request(1, fail, "x") },
		[]string{"HEADERS 1 OK grpc-status=5 grpc-message=100%25 %C3%A9t%C3%A9%0A END"},
	},
	{
		"a panic", func(c *rawClient) { c.request(1, crash, "x"); c.request(3, echo, "x") },
		append([]string{"HEADERS 1 OK grpc-status=13 grpc-message=internal error END"}, answered("3", `"\x00\x00\x00\x00\x01x"`)...),
	},
	{
		"an unknown method", func(c *rawClient) { c.request(1, "/test/None", "x") },
		[]string{"HEADERS 1 OK grpc-status=12 grpc-message=unknown method END", "RST_STREAM 1 NO_ERROR", still},
	},
	{"a message in parts", func(c *rawClient) {
		c.begin(1, echo)
		for _, part := range []string{"\x00", "\x00\x00\x00", "\x02h", "", "i"} {
			c.must(c.WriteData(1, false, []byte(part)))
		}
		c.must(c.WriteDataPadded(1, false, nil, make([]byte, 9)))
		c.must(c.WriteData(1, true, nil))
	}, append([]string{"WINDOW_UPDATE 1 10"}, answered("1", `"\x00\x00\x00\x00\x02hi"`)...)},
	{"trailers behind the message", func(c *rawClient) {
		c.begin(1, echo)
		c.must(c.WriteData(1, false, prefixed("hi")))
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields("x", "y"), EndHeaders: true, EndStream: true}))
	}, answered("1", `"\x00\x00\x00\x00\x02hi"`)},
	{"fields in parts", func(c *rawClient) {
		fields := c.fields(requestFields(echo)...)
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields[:3]}))
		c.must(c.WriteContinuation(1, false, fields[3:4]))
		c.must(c.WriteContinuation(1, true, fields[4:]))
		c.must(c.WriteData(1, true, prefixed("hi")))
	}, answered("1", `"\x00\x00\x00\x00\x02hi"`)},
	{"no message", func(c *rawClient) {
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(requestFields(echo)...), EndHeaders: true, EndStream: true}))
	}, []string{"HEADERS 1 OK grpc-status=13 grpc-message=the request has no message, or a part of one END", still}},
	{
		"a part of a message", func(c *rawClient) { c.begin(1, echo); c.must(c.WriteData(1, true, []byte("\x00\x00\x00\x00\x05hi"))) },
		[]string{"HEADERS 1 OK grpc-status=13 grpc-message=the request has no message, or a part of one END", still},
	},
	{
		"two messages", func(c *rawClient) { c.begin(1, echo); c.must(c.WriteData(1, false, []byte("\x00\x00\x00\x00\x01hi"))) },
		[]string{"HEADERS 1 OK grpc-status=13 grpc-message=the request has more than one message END", "RST_STREAM 1 NO_ERROR", still},
	},
	{
		"a compressed message", func(c *rawClient) { c.begin(1, echo); c.must(c.WriteData(1, true, []byte("\x01\x00\x00\x00\x01h"))) },
		[]string{"HEADERS 1 OK grpc-status=13 grpc-message=the message is compressed, and the request names no encoding END", still},
	},
	{
		"a large message", func(c *rawClient) { c.begin(1, echo); c.must(c.WriteData(1, false, []byte("\x00\x00\x04\x00\x01"))) },
		[]string{"HEADERS 1 OK grpc-status=8 grpc-message=a message has at most 262144 bytes END", "RST_STREAM 1 NO_ERROR", still},
	},
	{"data behind a refusal", func(c *rawClient) {
		c.begin(1, "/test/None")
		c.must(c.WriteData(1, true, prefixed("hi")))
	}, []string{"HEADERS 1 OK grpc-status=12 grpc-message=unknown method END", "RST_STREAM 1 NO_ERROR", still}},
	{
		"an encoding", func(c *rawClient) { c.begin(1, echo, "grpc-encoding", "gzip") },
		[]string{"HEADERS 1 OK grpc-status=12 grpc-message=compressed messages are not supported END", "RST_STREAM 1 NO_ERROR", still},
	},
	{"a browser", func(c *rawClient) {
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(":method", "GET", ":path", "/", ":scheme", "http"), EndHeaders: true, EndStream: true}))
	}, []string{"HEADERS 1 :status=405 content-type=application/grpc grpc-status=13 grpc-message=a request of gRPC has the method POST END", still}},
	{"another content", func(c *rawClient) {
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(":method", "POST", ":path", echo, "content-type", "application/grpcx"), EndHeaders: true, EndStream: true}))
	}, []string{"HEADERS 1 :status=415 content-type=application/grpc grpc-status=3 grpc-message=a request of gRPC has the content-type application/grpc END", still}},
	{"no path", func(c *rawClient) {
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(":method", "POST"), EndHeaders: true}))
	}, []string{"RST_STREAM 1 PROTOCOL_ERROR", still}},
	{"a field of HTTP/1.1", func(c *rawClient) { c.begin(1, echo, "connection", "close") }, []string{"RST_STREAM 1 PROTOCOL_ERROR", still}},
	{
		"many fields", func(c *rawClient) { c.begin(1, echo, "x", strings.Repeat("a", 16300)) },
		[]string{"HEADERS 1 OK grpc-status=8 grpc-message=the header fields of a request have at most 16384 bytes END", "RST_STREAM 1 NO_ERROR", still},
	},
	{"a request that is taken back", func(c *rawClient) {
		c.begin(1, echo)
		c.must(c.WriteRSTStream(1, http2.ErrCodeCancel))
		c.must(c.WriteData(1, true, prefixed("x")))
	}, []string{still}},
	{"a watcher", func(c *rawClient) { c.request(1, watch, "\x01") }, []string{"HEADERS 1 OK", `DATA 1 "\x00\x00\x00\x00\x01\x01"`}},
	{"frames without effect", func(c *rawClient) {
		c.must(c.WritePriority(1, http2.PriorityParam{Weight: 3}))
		c.must(c.WriteRawFrame(0x42, 0, 5, []byte("unknown")))
		c.must(c.WriteSettingsAck())
	}, []string{still}},
	{"a stream of one message", func(c *rawClient) { c.request(1, once, "hi") }, answered("1", `"\x00\x00\x00\x00\x02hi"`)},
	{
		"a panic of a stream", func(c *rawClient) { c.request(1, once, "crash") },
		[]string{"HEADERS 1 OK", "HEADERS 1 grpc-status=13 grpc-message=internal error END"},
	},
	{"other contents of gRPC", func(c *rawClient) {
		for i, kind := range []string{"application/grpc+proto", "application/grpc;x"} {
			fields := c.fields(":method", "POST", ":path", fail, "content-type", kind, "grpc-encoding", "identity")
			c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: fields, EndHeaders: true}))
			c.must(c.WriteData(uint32(2*i+1), true, prefixed("")))
		}
	}, []string{"HEADERS 1 OK grpc-status=5 grpc-message=100%25 %C3%A9t%C3%A9%0A END", "HEADERS 3 OK grpc-status=5 grpc-message=100%25 %C3%A9t%C3%A9%0A END"}},
	{
		"a long path", func(c *rawClient) { c.begin(1, "/"+strings.Repeat("é", 300)) },
		[]string{"HEADERS 1 OK grpc-status=12 grpc-message=unknown method END", "RST_STREAM 1 NO_ERROR", still},
	},
	{"a field twice", func(c *rawClient) { c.begin(1, echo, "x", "y", ":path", fail) }, []string{"RST_STREAM 1 PROTOCOL_ERROR", still}},
	{"a field of HTTP/2 behind others", func(c *rawClient) { c.begin(1, echo, "x", "y", ":authority", "a") }, []string{"RST_STREAM 1 PROTOCOL_ERROR", still}},
	{"data behind the end", func(c *rawClient) {
		c.begin(1, slow)
		c.must(c.WriteData(1, true, prefixed("hi")))
		c.must(c.WriteData(1, true, prefixed("hi")))
	}, []string{"RST_STREAM 1 STREAM_CLOSED", still}},
	{"fields behind the end", func(c *rawClient) {
		c.begin(3, slow)
		c.must(c.WriteData(3, true, prefixed("hi")))
		c.begin(3, slow)
		c.begin(1, slow)
	}, []string{"RST_STREAM 3 STREAM_CLOSED", "RST_STREAM 1 STREAM_CLOSED", still}},
	{"fields within a message", func(c *rawClient) { c.begin(1, echo); c.begin(1, echo) }, []string{"RST_STREAM 1 PROTOCOL_ERROR", still}},

	{"a request before a mistake", func(c *rawClient) {
		var together bytes.Buffer
		framer := http2.NewFramer(&together, nil)
		framer.AllowIllegalWrites = true
		c.must(framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(requestFields(echo)...), EndHeaders: true}))
		c.must(framer.WriteData(1, true, prefixed("hi")))
		c.must(framer.WriteWindowUpdate(77, 0))
		_, err := c.Write(together.Bytes())
		c.must(err)
	}, append(answered("1", `"\x00\x00\x00\x00\x02hi"`), "GOAWAY 1 PROTOCOL_ERROR", "EOF")},
	{"padding that is longer than its frame", func(c *rawClient) {
		c.must(c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, 1, []byte{9, 1}))
	}, []string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"}},
	{"the header of a large frame", func(c *rawClient) {
		_, err := c.Write([]byte{0x10, 0, 0, 0, 0, 0, 0, 0, 1})
		c.must(err)
	}, []string{"GOAWAY 0 FRAME_SIZE_ERROR", "EOF"}},
	{"many settings", func(c *rawClient) {
		var all []http2.Setting
		for i := range maxSettings + 1 {
			all = append(all, http2.Setting{ID: http2.SettingID(100 + i), Val: 1})
		}
		c.must(c.WriteSettings(all...))
	}, []string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"}},
	{"a window of all streams that is too large for one", func(c *rawClient) {
		c.begin(1, echo)
		c.must(c.WriteWindowUpdate(1, 1))
		c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1}))
	}, []string{"GOAWAY 1 FLOW_CONTROL_ERROR", "EOF"}},
	{"empty fields without end", func(c *rawClient) {
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields("x", "y")}))
		for range maxEncoded / frameHeader {
			_ = c.WriteContinuation(1, false, nil)
		}
	}, []string{"GOAWAY 0 ENHANCE_YOUR_CALM", "EOF"}},
}

// mistakeTests are frames that end their stream or connection, because they break the rules of HTTP/2.
var mistakeTests = []frameTest{
	{"an even stream", func(c *rawClient) { c.begin(2, echo) }, []string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"}},
	{"data of no stream", func(c *rawClient) { c.must(c.WriteData(3, true, nil)) }, []string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"}},
	{"a window of no stream", func(c *rawClient) { c.must(c.WriteWindowUpdate(3, 1)) }, []string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"}},
	{"the end of no stream", func(c *rawClient) { c.must(c.WriteRSTStream(3, http2.ErrCodeCancel)) }, []string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"}},
	{"a window without growth", func(c *rawClient) { c.must(c.WriteWindowUpdate(0, 0)) }, []string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"}},
	{"a window that is too large", func(c *rawClient) { c.must(c.WriteWindowUpdate(0, 1<<31-1)) }, []string{"GOAWAY 0 FLOW_CONTROL_ERROR", "EOF"}},
	{
		"a stream's window that is too large", func(c *rawClient) { c.begin(1, echo); c.must(c.WriteWindowUpdate(1, 1<<31-1)) },
		[]string{"RST_STREAM 1 FLOW_CONTROL_ERROR", still},
	},
	{
		"a malformed setting", func(c *rawClient) {
			c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}))
		},
		[]string{"GOAWAY 0 FLOW_CONTROL_ERROR", "EOF"},
	},
	{"a setting twice", func(c *rawClient) {
		s := http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20}
		c.must(c.WriteSettings(s, s))
	}, []string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"}},
	{
		"a large frame", func(c *rawClient) { c.begin(1, echo); c.must(c.WriteData(1, false, make([]byte, maxFrame+1))) },
		[]string{"GOAWAY 1 FRAME_SIZE_ERROR", "EOF"},
	},
	{
		"a push", func(c *rawClient) {
			c.must(c.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true}))
		},
		[]string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"},
	},
	{"a frame between fields", func(c *rawClient) {
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields("x", "y")}))
		c.must(c.WritePing(false, ping))
	}, []string{"GOAWAY 0 PROTOCOL_ERROR", "EOF"}},
	{"fields without meaning", func(c *rawClient) {
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff}, EndHeaders: true}))
	}, []string{"GOAWAY 0 COMPRESSION_ERROR", "EOF"}},
	{"a part of fields", func(c *rawClient) {
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x40, 5}, EndHeaders: true}))
	}, []string{"GOAWAY 0 COMPRESSION_ERROR", "EOF"}},
	{"fields without end", func(c *rawClient) {
		part := []byte(strings.Repeat(string(c.fields("x", "y")), 3000))
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: part}))
		for range 4 {
			_ = c.WriteContinuation(1, false, part)
		}
	}, []string{"GOAWAY 0 ENHANCE_YOUR_CALM", "EOF"}},
}

// TestFrames checks what the server answers to sequences of frames.
func TestFrames(t *testing.T) {
	l, may := listen(t), make(chan struct{})
	serve(t, slowOptions(nil, may), l)
	t.Cleanup(func() { close(may) })
	for _, test := range slices.Concat(requestTests, mistakeTests) {
		t.Run(test.name, func(t *testing.T) {
			c := dial(t, l.Addr())
			test.send(c)
			_ = c.WritePing(false, ping)
			var got []string
			for range test.want {
				frame := c.next()
				if frame == still && test.want[len(test.want)-1] != still { // it may be answered before the round is
					frame = c.next()
				}
				got = append(got, frame)
			}
			// Answers to control frames precede those of the round.
			if g, w := strings.Join(got, "\n"), strings.Join(test.want, "\n"); g != w {
				t.Errorf("got\n%s\nwant\n%s", g, w)
			}
		})
	}
}
