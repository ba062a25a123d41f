package grpcserver

import (
	"testing"
	"time"

	"golang.org/x/net/http2"
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
		c.must(c.WriteData(1, true, prefixed("hi")))
		c.want(answered("1", `"\x00\x00\x00\x00\x02hi"`)...)
		begin := time.Now()
		c.want("HEADERS 3 grpc-status=14 grpc-message=the server is shutting down END")
		if took := time.Since(begin); took != watchWait {
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
		c.want("GOAWAY 1 NO_ERROR", "HEADERS 1 OK grpc-status=14 grpc-message=the server is shutting down END", "RST_STREAM 1 NO_ERROR")
		if took := time.Since(begin); took != opts.MaxAgeGrace {
			t.Errorf("the connection was closed after %s", took)
		}
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
