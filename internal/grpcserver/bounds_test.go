package grpcserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/test/bufconn"
)

// TestTogether: requests that arrive together are one call of their method.
func TestTogether(t *testing.T) {
	const most = 100
	batches := make(chan int, most)
	l := listen(t)
	serve(t, testOptions(batches), l)
	c := dial(t, l.Addr())
	var sent bytes.Buffer
	buffered := http2.NewFramer(&sent, nil)
	for i := range uint32(most) {
		fields := c.fields(requestFields(echo)...)
		c.must(buffered.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: fields, EndHeaders: true}))
		c.must(buffered.WriteData(2*i+1, true, prefixed("hi")))
	}
	_, err := c.Write(sent.Bytes())
	c.must(err)
	for i := range most {
		id := fmt.Sprint(2*i + 1)
		c.want(answered(id, `"\x00\x00\x00\x00\x02hi"`)...)
	}
	total, calls := 0, len(batches)
	for range calls {
		total += <-batches
	}
	if total != most || calls > most/10 {
		t.Errorf("%d requests in %d calls", total, calls)
	}
}

// TestManyStreams: a connection has a bounded number of requests under way.
func TestManyStreams(t *testing.T) {
	l := listen(t)
	serve(t, testOptions(nil), l)
	c := dial(t, l.Addr())
	for i := range uint32(maxStreams) {
		c.begin(2*i+1, echo)
	}
	c.begin(2*maxStreams+1, echo)
	c.want(fmt.Sprintf("RST_STREAM %d REFUSED_STREAM", 2*maxStreams+1))
	c.must(c.WriteRSTStream(3, http2.ErrCodeCancel))
	c.request(2*maxStreams+3, echo, "hi")
	c.want(answered(fmt.Sprint(2*maxStreams+3), `"\x00\x00\x00\x00\x02hi"`)...)
}

// TestManyWatchers: a connection has a bounded number of streams of messages.
func TestManyWatchers(t *testing.T) {
	l := listen(t)
	serve(t, testOptions(nil), l)
	c := dial(t, l.Addr())
	for i := range uint32(maxStreaming) {
		c.request(2*i+1, watch, "\x00")
		c.want(fmt.Sprintf("HEADERS %d OK", 2*i+1))
	}
	c.request(2*maxStreaming+1, watch, "\x00")
	c.want(fmt.Sprintf("HEADERS %d OK grpc-status=8 grpc-message=a connection has at most %d streams of messages END", 2*maxStreaming+1, maxStreaming))
	c.must(c.WriteRSTStream(1, http2.ErrCodeCancel))
	c.request(2*maxStreaming+3, watch, "\x00")
	c.want(fmt.Sprintf("HEADERS %d OK", 2*maxStreaming+3))
}

// TestUnfinished: messages that do not arrive whole take a bounded amount of memory of a connection.
func TestUnfinished(t *testing.T) {
	l := listen(t)
	s, _ := serve(t, testOptions(nil), l)
	c := dial(t, l.Addr())
	part := append(binary.BigEndian.AppendUint32([]byte{0}, MaxMessage), make([]byte, maxFrame-prefixLen)...)
	const fit = maxUnfinished / maxFrame
	for i := range uint32(fit) {
		id := 2*(i%maxStreams) + 1
		if i < maxStreams {
			c.begin(id, echo)
		} else {
			part = make([]byte, maxFrame)
		}
		c.must(c.WriteData(id, false, part))
	}
	c.must(c.WriteData(1, false, []byte{0}))
	refused := "HEADERS 1 OK grpc-status=8 grpc-message=too many messages have not arrived whole END"
	for got := ""; got != refused; {
		if got = c.next(); got != refused && !strings.HasPrefix(got, "WINDOW_UPDATE 0 ") {
			t.Fatal(got)
		}
	}
	c.want("RST_STREAM 1 NO_ERROR")
	if n := s.unfinished.Load(); n > maxUnfinished {
		t.Errorf("%d bytes are unfinished", n)
	}
}

// TestFlow: replies are as large as the windows of the client, and go on with them.
func TestFlow(t *testing.T) {
	l := listen(t)
	serve(t, testOptions(nil), l)
	c := dial(t, l.Addr(), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3})
	c.request(1, echo, "hello")
	c.want("HEADERS 1 OK", `DATA 1 "\x00\x00\x00"`)
	c.request(3, echo, "hi")
	c.want("HEADERS 3 OK", `DATA 3 "\x00\x00\x00"`)
	c.must(c.WriteWindowUpdate(3, 100))
	c.want(`DATA 3 "\x00\x02hi"`, "HEADERS 3 grpc-status=0 END")
	c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 5}))
	c.want(`DATA 1 "\x00\x05"`, "SETTINGS ack")
	c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}))
	c.want("SETTINGS ack")
	c.must(c.WriteWindowUpdate(1, 4)) // the window was -4
	c.must(c.WriteWindowUpdate(1, 5))
	c.want(`DATA 1 "hello"`, "HEADERS 1 grpc-status=0 END")

	// The window of the connection, of which 17 bytes are used, bounds all streams together.
	large := strings.Repeat("x", 50_000)
	for _, id := range []uint32{5, 7} {
		c.begin(id, echo)
		c.must(c.WriteWindowUpdate(id, 1<<20))
		message := prefixed(large)
		for len(message) > 0 {
			n := min(len(message), maxFrame)
			c.must(c.WriteData(id, n == len(message), message[:n]))
			message = message[n:]
		}
	}
	c.want("HEADERS 5 OK", "DATA 5 16384 bytes", "DATA 5 16384 bytes", "DATA 5 16384 bytes", "DATA 5 853 bytes", "HEADERS 5 grpc-status=0 END")
	c.want("HEADERS 7 OK", fmt.Sprintf("DATA 7 %d bytes", initialWindow-17-50_005))
	c.must(c.WriteWindowUpdate(0, 1<<20))
	c.want("DATA 7 16384 bytes", "DATA 7 16384 bytes", fmt.Sprintf("DATA 7 %d bytes", 2*50_005-(initialWindow-17)-2*16384), "HEADERS 7 grpc-status=0 END")
}

// TestManyReplies: while many replies wait for the client, further requests are refused.
func TestManyReplies(t *testing.T) {
	l := listen(t)
	serve(t, testOptions(nil), l)
	c := dial(t, l.Addr(), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	const size = 10_000
	id := uint32(1)
	for ; ; id += 2 {
		c.request(id, echo, strings.Repeat("x", size))
		got := c.next()
		for strings.HasPrefix(got, "WINDOW_UPDATE") {
			got = c.next()
		}
		if got == fmt.Sprintf("HEADERS %d OK", id) {
			continue
		}
		if want := fmt.Sprintf("HEADERS %d OK grpc-status=8 grpc-message=more than %d bytes of replies wait for the client END", id, maxBlocked); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		break
	}
	if n := (id - 1) / 2 * (size + prefixLen); n < maxBlocked || n > maxBlocked+2*size {
		t.Errorf("refused when %d bytes wait", n)
	}
}

// inMemory serves clients in the memory of a test with a clock of its own.
func inMemory(t *testing.T, opts Options, test func(c *rawClient, end func())) {
	inMemorySlow(t, func(chan struct{}) Options { return opts }, func(c *rawClient, _ chan struct{}, end func()) { test(c, end) })
}

// inMemorySlow is inMemory for options that need a channel.
func inMemorySlow(t *testing.T, opts func(may chan struct{}) Options, test func(c *rawClient, may chan struct{}, end func())) {
	synctest.Test(t, func(t *testing.T) {
		l, may := bufconn.Listen(1<<20), make(chan struct{})
		_, end := serve(t, opts(may), l)
		conn, err := l.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := newRawClient(t, conn)
		_ = conn.SetDeadline(time.Time{})
		c.want("SETTINGS", "WINDOW_UPDATE 0 983041", "SETTINGS ack")
		test(c, may, end)
		_ = conn.Close()
		end()
	})
}

// TestLateRequests: a request whose message does not arrive is ended, and others are not.
func TestLateRequests(t *testing.T) {
	inMemory(t, testOptions(nil), func(c *rawClient, _ func()) {
		c.request(1, watch, "\x00")
		c.want("HEADERS 1 OK")
		c.begin(3, echo)
		time.Sleep(MaxCall / 2)
		c.begin(5, echo)
		time.Sleep(MaxCall/2 - 1)
		c.request(7, echo, "hi")
		c.want(answered("7", `"\x00\x00\x00\x00\x02hi"`)...)
		begin := time.Now()
		c.want("HEADERS 3 OK grpc-status=4 grpc-message=the request did not arrive whole within 10s END", "RST_STREAM 3 NO_ERROR")
		if took := time.Since(begin); took != 1 {
			t.Errorf("the request ended %s late", took-1)
		}
		c.must(c.WriteData(5, true, prefixed("hi")))
		c.want(answered("5", `"\x00\x00\x00\x00\x02hi"`)...)
		time.Sleep(10 * MaxCall)
		c.must(c.WriteRSTStream(1, http2.ErrCodeCancel))
		c.must(c.WritePing(false, [8]byte{}))
		c.want(`PING "\x00\x00\x00\x00\x00\x00\x00\x00" ack=true`)
	})
}

// TestLateReplies: a reply for which the client makes no room is dropped, even if it makes some again and
// again.
func TestLateReplies(t *testing.T) {
	inMemory(t, testOptions(nil), func(c *rawClient, _ func()) {
		c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
		c.want("SETTINGS ack")
		c.request(1, echo, "hi")
		c.want("HEADERS 1 OK")
		for range 3 {
			time.Sleep(MaxCall / 4)
			c.must(c.WriteWindowUpdate(1, 1))
			c.want(`DATA 1 "\x00"`)
		}
		c.want("RST_STREAM 1 CANCEL")
	})
}

// TestPreface: a client that does not begin to speak HTTP/2 is not waited for long.
func TestPreface(t *testing.T) {
	for _, sent := range []string{"", http2.ClientPreface[:10], http2.ClientPreface, "GET / HTTP/1.1\r\n\r\n", http2.ClientPreface + "\x00\x00\x08\x06\x00\x00\x00\x00\x00........"} {
		synctest.Test(t, func(t *testing.T) {
			l := bufconn.Listen(1 << 10)
			serve(t, testOptions(nil), l)
			conn, err := l.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			_, _ = conn.Write([]byte(sent))
			for buf := make([]byte, 100); err == nil; {
				_, err = conn.Read(buf)
			}
			want := time.Duration(0)
			if strings.HasPrefix(http2.ClientPreface, sent) {
				want = beginTimeout
			}
			if took := time.Since(begin); took != want {
				t.Errorf("%q: closed after %s, want %s", sent, took, want)
			}
			_ = conn.Close()
		})
	}
}

// TestDeafClient: a client that does not read is disconnected, and does not delay the others.
func TestDeafClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(8 << 10)
		s, end := serve(t, testOptions(nil), l)
		conn, err := l.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		deaf := newRawClient(t, conn)
		_ = conn.SetDeadline(time.Time{})
		deaf.want("SETTINGS", "WINDOW_UPDATE 0 983041", "SETTINGS ack")
		fields := deaf.fields(requestFields(echo)...)
		go func() { // until the connection is closed
			for i := range uint32(5) {
				_ = deaf.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: fields, EndHeaders: true})
				_ = deaf.WriteData(2*i+1, true, prefixed(strings.Repeat("x", 5000)))
			}
		}()
		synctest.Wait()
		other, err := l.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := newRawClient(t, other)
		_ = other.SetDeadline(time.Time{})
		c.want("SETTINGS", "WINDOW_UPDATE 0 983041", "SETTINGS ack")
		c.request(1, echo, "hi")
		c.want(answered("1", `"\x00\x00\x00\x00\x02hi"`)...)
		time.Sleep(writeTimeout)
		synctest.Wait()
		s.mu.Lock()
		if len(s.conns) != 1 {
			t.Errorf("%d connections are left", len(s.conns))
		}
		s.mu.Unlock()
		_, _ = conn.Close(), other.Close()
		end()
	})
}

// TestShare: while the messages of all connections are beyond their bound, small ones still arrive.
func TestShare(t *testing.T) {
	l := listen(t)
	s, _ := serve(t, testOptions(nil), l)
	s.unfinished.Add(maxUnfinishedOfAll)
	defer s.unfinished.Add(-maxUnfinishedOfAll)
	c := dial(t, l.Addr())
	c.begin(1, echo)
	c.must(c.WriteData(1, false, prefixed("hi")))
	c.must(c.WriteData(1, true, nil))
	c.want(answered("1", `"\x00\x00\x00\x00\x02hi"`)...)
	c.begin(3, echo)
	large := prefixed(strings.Repeat("x", 2*unfinishedShare))
	for range unfinishedShare/maxFrame + 1 {
		c.must(c.WriteData(3, false, large[:maxFrame]))
		large = large[maxFrame:]
	}
	c.want("HEADERS 3 OK grpc-status=8 grpc-message=too many messages have not arrived whole END", "RST_STREAM 3 NO_ERROR")
}

// TestKept: a connection keeps little memory of a burst.
func TestKept(t *testing.T) {
	l := listen(t)
	s, _ := serve(t, testOptions(nil), l)
	c := dial(t, l.Addr())
	for i := range uint32(maxStreams) {
		c.begin(2*i+1, echo)
	}
	for i := range uint32(maxStreams) {
		c.must(c.WriteData(2*i+1, true, prefixed(strings.Repeat("x", 200))))
		c.want(answered(fmt.Sprint(2*i+1), "205 bytes")...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for of := range s.conns {
		of.mu.Lock()
		if n := len(of.free); n != maxFree || of.out.Cap() > keptOut {
			t.Errorf("%d streams and an output of %d bytes are kept", n, of.out.Cap())
		}
		of.mu.Unlock()
	}
}

// TestPadding: padding of messages does not use up the windows of a client.
func TestPadding(t *testing.T) {
	l := listen(t)
	serve(t, testOptions(nil), l)
	c := dial(t, l.Addr())
	c.begin(1, echo)
	stream, all := prefixLen+MaxMessage, receiveWindow
	for sent := 0; sent < 2*receiveWindow; sent += 256 {
		c.must(c.WriteDataPadded(1, false, nil, make([]byte, 255)))
		stream, all = stream-256, all-256
		for stream < 256 || all < 256 {
			var n int
			if got := c.next(); strings.HasPrefix(got, "WINDOW_UPDATE 1") {
				_, _ = fmt.Sscanf(got, "WINDOW_UPDATE 1 %d", &n)
				stream += n
			} else if _, err := fmt.Sscanf(got, "WINDOW_UPDATE 0 %d", &n); err != nil {
				t.Fatal(got)
			} else {
				all += n
			}
		}
	}
}

// TestBlockedMessages: requests whose replies wait for room keep no messages.
func TestBlockedMessages(t *testing.T) {
	l := listen(t)
	opts := testOptions(nil)
	opts.Unary[echo] = func(b *Batch) {
		for _, c := range b.Calls {
			c.Reply = append(c.Reply, "hi"...)
		}
	}
	s, _ := serve(t, opts, l)
	c := dial(t, l.Addr(), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for i := range uint32(20) {
		c.request(2*i+1, echo, strings.Repeat("x", 10_000))
		c.want(fmt.Sprintf("HEADERS %d OK", 2*i+1))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for of := range s.conns {
		of.mu.Lock()
		for _, st := range of.streams {
			if cap(st.data) > 0 || st.call.Message != nil {
				t.Errorf("stream %d keeps %d bytes", st.id, cap(st.data))
			}
		}
		of.mu.Unlock()
	}
}
