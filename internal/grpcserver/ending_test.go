package grpcserver

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/test/bufconn"
)

const (
	announced = "GOAWAY 2147483647 NO_ERROR"
	endPing   = `PING "goingawa" ack=false`
)

// acknowledgeEnd answers the ping of a connection that ends.
func (c *rawClient) acknowledgeEnd() { c.must(c.WritePing(true, pingData)) }

// TestDrain: a connection ends when its requests are answered, also those that were sent before the client
// knew of the end.
func TestDrain(t *testing.T) {
	inMemory(t, testOptions(nil), func(c *rawClient, end func()) {
		c.begin(1, echo)
		c.request(3, watch, "\x00")
		c.want("HEADERS 3 OK")
		go end()
		c.want(announced, endPing)
		c.request(5, echo, "hi")
		c.want(answered("5", `"\x00\x00\x00\x00\x02hi"`)...)
		c.acknowledgeEnd()
		c.want("GOAWAY 5 NO_ERROR")
		c.request(7, echo, "too late")
		time.Sleep(10 * streamsWait)
		c.must(c.WriteData(1, true, prefixed("hi")))
		c.want(answered("1", `"\x00\x00\x00\x00\x02hi"`)...)
		begin := time.Now()
		c.want("HEADERS 3 grpc-status=14 grpc-message=the connection is ending END")
		if took := time.Since(begin); took != streamsWait {
			t.Errorf("the watcher ended after %s", took)
		}
		c.must(c.Close())
	})
}

// TestDrainWithoutAnswer: a client that does not answer delays the end by no more than ShutdownTimeout.
func TestDrainWithoutAnswer(t *testing.T) {
	opts := testOptions(nil)
	inMemory(t, opts, func(c *rawClient, end func()) {
		c.begin(1, echo)
		begin := time.Now()
		ended := make(chan struct{})
		go func() {
			end()
			close(ended)
		}()
		c.want(announced, endPing, "GOAWAY 1 NO_ERROR")
		if took := time.Since(begin); took != pingWait {
			t.Errorf("the last stream was known after %s", took)
		}
		<-ended
		if took := time.Since(begin); took != opts.ShutdownTimeout {
			t.Errorf("the server ended after %s", took)
		}
	})
}

// TestMaxAge: an old connection ends as one of a server that drains, and is closed when the grace is over.
func TestMaxAge(t *testing.T) {
	opts := testOptions(nil)
	opts.MaxAge, opts.MaxAgeGrace = time.Hour, 4*time.Second
	inMemory(t, opts, func(c *rawClient, _ func()) {
		begin := time.Now()
		c.want(announced)
		if age := time.Since(begin); age < opts.MaxAge*9/10 || age > opts.MaxAge*11/10 {
			t.Errorf("the connection ends after %s", age)
		}
		begin = time.Now()
		c.want(endPing)
		c.begin(1, echo)
		c.acknowledgeEnd()
		c.want("GOAWAY 1 NO_ERROR", "HEADERS 1 OK grpc-status=14 grpc-message=the connection is ending END", "RST_STREAM 1 NO_ERROR")
		if took := time.Since(begin); took != opts.MaxAgeGrace {
			t.Errorf("the connection was closed after %s", took)
		}
	})
}

// TestShortGrace: a connection whose grace is over before the client knows of its end is closed with the last
// request that was answered.
func TestShortGrace(t *testing.T) {
	opts := testOptions(nil)
	opts.MaxAge, opts.MaxAgeGrace = time.Hour, pingWait/2
	inMemory(t, opts, func(c *rawClient, _ func()) {
		c.request(1, echo, "hi")
		c.want(answered("1", `"\x00\x00\x00\x00\x02hi"`)...)
		c.want(announced, endPing, "GOAWAY 1 NO_ERROR", "EOF")
	})
}

// TestMistakeAtEnd: the last request of a connection that ends does not change.
func TestMistakeAtEnd(t *testing.T) {
	inMemory(t, testOptions(nil), func(c *rawClient, end func()) {
		c.begin(1, echo)
		go end()
		c.want(announced, endPing)
		c.must(c.WritePing(true, [8]byte{})) // not that of the end
		c.begin(3, echo)
		c.acknowledgeEnd()
		c.want("GOAWAY 3 NO_ERROR")
		c.begin(9, echo)
		c.must(c.WriteWindowUpdate(0, 0))
		c.want("GOAWAY 3 PROTOCOL_ERROR")
		c.must(c.Close())
	})
}

// TestDrainInPreface: a client that connects while the server begins to drain is asked to go.
func TestDrainInPreface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(1 << 20)
		_, end := serve(t, testOptions(nil), l)
		conn, err := l.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		go end()
		synctest.Wait()
		c := newRawClient(t, conn)
		c.want("SETTINGS", "WINDOW_UPDATE 0 983041", "SETTINGS ack", announced, endPing)
		c.acknowledgeEnd()
		c.want("GOAWAY 0 NO_ERROR")
		c.must(c.Close())
	})
}

// TestGoAway: a client that ends its side gets the answers to what it has sent.
func TestGoAway(t *testing.T) {
	inMemory(t, testOptions(nil), func(c *rawClient, _ func()) {
		c.request(1, echo, "hi")
		c.must(c.WriteGoAway(0, http2.ErrCodeNo, nil))
		c.want(answered("1", `"\x00\x00\x00\x00\x02hi"`)...)
	})
}

// TestDrainSilent: a connection that has not begun to speak HTTP/2 delays the end for a short time.
func TestDrainSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bufconn.Listen(1 << 20)
		_, end := serve(t, testOptions(nil), l)
		conn, err := l.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		end()
		if took := time.Since(begin); took != pingWait {
			t.Errorf("the server ended after %s", took)
		}
		_ = conn.Close()
	})
}
