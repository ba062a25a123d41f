package grpcserver

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/test/bufconn"
)

func maySlow(may chan struct{}) Options { return slowOptions(nil, may) }

// TestLater: calls that a method leaves to Batch.Go delay no others, also if they are taken back or panic.
func TestLater(t *testing.T) {
	inMemorySlow(t, maySlow, func(c *rawClient, may chan struct{}, _ func()) {
		for i, message := range []string{"a", "b", "crash", "d"} {
			c.request(uint32(2*i+1), slow, message)
		}
		c.request(9, echo, "hi")
		c.want(answered("9", `"\x00\x00\x00\x00\x02hi"`)...)
		c.must(c.WriteRSTStream(3, http2.ErrCodeCancel))
		c.must(c.WritePing(false, [8]byte{}))
		c.want(`PING "\x00\x00\x00\x00\x00\x00\x00\x00" ack=true`)
		close(may)
		got := map[string]int{}
		for range 7 {
			got[c.next()]++
		}
		for _, want := range []string{"HEADERS 1 OK", `DATA 1 "\x00\x00\x00\x00\x01a"`, "HEADERS 1 grpc-status=0 END", "HEADERS 5 OK grpc-status=13 grpc-message=internal error END", "HEADERS 7 OK", `DATA 7 "\x00\x00\x00\x00\x01d"`, "HEADERS 7 grpc-status=0 END"} {
			if got[want] != 1 {
				t.Errorf("%s is missing: %v", want, got)
			}
		}
		c.request(11, echo, "hi")
		c.want(answered("11", `"\x00\x00\x00\x00\x02hi"`)...)
	})
}

// TestAbandoned: calls that run on after their clients have taken them back count as requests under way.
func TestAbandoned(t *testing.T) {
	inMemorySlow(t, maySlow, func(c *rawClient, may chan struct{}, _ func()) {
		for i := range uint32(maxStreams) {
			c.request(2*i+1, slow, "x")
			synctest.Wait() // the method has the call
			c.must(c.WriteRSTStream(2*i+1, http2.ErrCodeCancel))
		}
		c.request(2*maxStreams+1, echo, "hi")
		c.want(fmt.Sprintf("RST_STREAM %d REFUSED_STREAM", 2*maxStreams+1))
		close(may)
		synctest.Wait()
		c.request(2*maxStreams+3, echo, "hi")
		c.want(answered(fmt.Sprint(2*maxStreams+3), `"\x00\x00\x00\x00\x02hi"`)...)
	})
}

// TestDrainLater: the end of a connection waits for the calls of Batch.Go, and no longer.
func TestDrainLater(t *testing.T) {
	inMemorySlow(t, maySlow, func(c *rawClient, may chan struct{}, end func()) {
		c.request(1, slow, "a")
		synctest.Wait()
		go end()
		c.want(announced, endPing)
		c.acknowledgeEnd()
		c.want("GOAWAY 1 NO_ERROR")
		time.Sleep(time.Second)
		close(may)
		begin := time.Now()
		c.want(answered("1", `"\x00\x00\x00\x00\x01a"`)...)
		c.must(c.Close())
		end()
		if took := time.Since(begin); took != 0 {
			t.Errorf("the server ended %s later", took)
		}
	})
}

// TestStreamWithoutRoom: a stream of messages whose client makes no room ends at the next message, or in time.
func TestStreamWithoutRoom(t *testing.T) {
	inMemory(t, testOptions(nil), func(c *rawClient, _ func()) {
		c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
		c.want("SETTINGS ack")
		c.request(1, watch, "\x02")
		c.want("HEADERS 1 OK", fmt.Sprintf("HEADERS 1 grpc-status=8 grpc-message=more than %d bytes of replies wait for the client END", maxBlocked))
		c.request(3, watch, "\x01")
		c.want("HEADERS 3 OK")
		begin := time.Now()
		c.want("RST_STREAM 3 CANCEL")
		if took := time.Since(begin); took != MaxCall {
			t.Errorf("the stream ended after %s", took)
		}
	})
}

// TestDeafLater: a connection whose client does not take the reply of a call of Batch.Go ends.
func TestDeafLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, may := bufconn.Listen(4<<10), make(chan struct{})
		s, _ := serve(t, slowOptions(nil, may), l)
		conn, err := l.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := newRawClient(t, conn)
		_ = conn.SetDeadline(time.Time{})
		c.want("SETTINGS", "WINDOW_UPDATE 0 983041", "SETTINGS ack")
		c.request(1, slow, strings.Repeat("x", 10_000))
		synctest.Wait()
		close(may)
		time.Sleep(writeTimeout)
		synctest.Wait()
		s.mu.Lock()
		if len(s.conns) != 0 {
			t.Errorf("%d connections are left", len(s.conns))
		}
		s.mu.Unlock()
		_ = conn.Close()
	})
}
