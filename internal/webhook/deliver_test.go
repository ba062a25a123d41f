package webhook

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/internal/run"
)

// TestRetries checks that an event is sent again after trouble that may pass, with its id and body, a new
// timestamp and signature, and longer and longer pauses, and that the next event waits for it.
func TestRetries(t *testing.T) {
	for name, trouble := range map[string]func(w http.ResponseWriter){
		"a lost connection":  func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"408":                func(w http.ResponseWriter) { w.WriteHeader(http.StatusRequestTimeout) },
		"425":                func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooEarly) },
		"429":                func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"500":                func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"503":                func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"599":                func(w http.ResponseWriter) { w.WriteHeader(599) },
		"an endless header":  func(w http.ResponseWriter) { w.Header().Set("X", strings.Repeat("x", maxReplyHeader)) },
		"rubbish":            func(w http.ResponseWriter) { hijack(t, w, "rubbish\r\n\r\n") },
		"an early end":       func(w http.ResponseWriter) { hijack(t, w, "HTTP/1.1 200 OK\r\n") },
		"a status of letter": func(w http.ResponseWriter) { hijack(t, w, "HTTP/1.1 2OO OK\r\n\r\n") },
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &endpoint{t: t, secret: newSecret(), answer: func(n int, w http.ResponseWriter, _ *http.Request) {
				if n < maxAttempts {
					trouble(w)
				}
			}}
			s, log := newSender(t, "http://127.0.0.1/", e.secret, serve(t, e))
			end := start(t, s)
			send(t, s, "first", "second")
			time.Sleep(3 * time.Minute)
			end()
			expect(t, s, Counts{Sent: 2})
			got := e.requests()
			if len(got) != maxAttempts+1 || got[maxAttempts].id != "second" {
				t.Fatalf("%s: received %q", name, ids(got))
			}
			checkRetries(t, name, got[:maxAttempts])
			if log.String() != "" {
				t.Errorf("%s: the log is %s", name, log)
			}
		})
	}
}

// hijack answers with a text, and closes the connection.
func hijack(t *testing.T, w http.ResponseWriter, text string) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = fmt.Fprint(conn, text)
	_ = conn.Close()
}

// checkRetries checks the attempts of one event.
func checkRetries(t *testing.T, name string, all []request) {
	t.Helper()
	signatures, exact := map[string]string{}, 0 // signatures by their timestamps
	for i, r := range all {
		if r.id != "first" || r.body != all[0].body || r.timestamp != fmt.Sprint(r.at.Unix()) {
			t.Errorf("%s: attempt %d is %+v", name, i+1, r)
		}
		signatures[r.timestamp] = r.signature
		if i == 0 {
			continue
		}
		waited, want := r.at.Sub(all[i-1].at), min(firstPause<<(i-1), maxPause)
		if waited < want/2 || waited >= want*3/2 {
			t.Errorf("%s: attempt %d came after %v, want about %v", name, i+1, waited, want)
		}
		if waited == want {
			exact++
		}
	}
	if exact > 1 {
		t.Errorf("%s: %d pauses are not random", name, exact)
	}
	if len(signatures) < maxAttempts-1 { // the first two may be in one second
		t.Errorf("%s: signatures %q", name, signatures)
	}
}

// TestGivingUp checks that an event fails after some attempts in about a minute, that the next one follows
// after a pause, and that a line a minute is logged.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{t: t, secret: newSecret(), answer: status(http.StatusBadGateway)}
		s, log := newSender(t, "http://user-part.example/hunter2", e.secret, serve(t, e))
		end := start(t, s)
		send(t, s, "first", "second", "third")
		time.Sleep(10 * time.Minute)
		end()
		expect(t, s, Counts{Failed: 3})
		got := e.requests()
		if want := slices.Concat(slices.Repeat([]string{"first"}, maxAttempts), slices.Repeat([]string{"second"}, maxAttempts), slices.Repeat([]string{"third"}, maxAttempts)); !slices.Equal(ids(got), want) {
			t.Fatalf("received %q", ids(got))
		}
		if took := got[maxAttempts-1].at.Sub(got[0].at); took < 30*time.Second || took > 95*time.Second {
			t.Errorf("the attempts took %v", took)
		}
		if waited := got[maxAttempts].at.Sub(got[maxAttempts-1].at); waited < maxPause/2 {
			t.Errorf("the next event came after %v", waited)
		}
		const want = `msg="failed to deliver an event to the webhook" host=user-part.example id=first type=limit.warned attempts=8 error="the endpoint answered 502 Bad Gateway" failed=1`
		if text := log.String(); !strings.Contains(text, want) || strings.Contains(text, "hunter2") || strings.Count(text, "\n") > 3 {
			t.Errorf("the log is %s", text)
		}
	})
}

// TestOldEvents checks that events that have waited too long are dropped, and that later ones arrive when
// the endpoint is back.
func TestOldEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(30 * time.Minute)
		e := &endpoint{t: t, secret: newSecret(), answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
			if time.Now().Before(back) {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}}
		s, log := newSender(t, "http://127.0.0.1/", e.secret, serve(t, e))
		end := start(t, s)
		for i := range 40 {
			send(t, s, fmt.Sprint("old-", i))
		}
		time.Sleep(31 * time.Minute)
		send(t, s, "new")
		time.Sleep(time.Minute)
		end()
		got := s.Counts()
		if got.Sent != 1 || got.Failed < 5 || got.Failed > 15 || got.Failed+got.Dropped != 40 || got.Queued != 0 {
			t.Errorf("counts %+v", got)
		}
		if all := ids(e.requests()); all[len(all)-1] != "new" || !strings.Contains(log.String(), "waited more than 10m0s") {
			t.Errorf("received %q last, log %s", all[len(all)-1], log)
		}
	})
}

// TestOldest checks that an event is delivered that has waited as long as one may, and none that has waited
// longer.
func TestOldest(t *testing.T) {
	for over, want := range map[time.Duration]Counts{0: {Sent: 1}, time.Nanosecond: {Dropped: 1}} {
		synctest.Test(t, func(t *testing.T) {
			e := &endpoint{t: t, secret: newSecret()}
			s, _ := newSender(t, "http://127.0.0.1/", e.secret, serve(t, e))
			send(t, s, "old")
			time.Sleep(maxWait + over)
			end := start(t, s)
			synctest.Wait()
			end()
			expect(t, s, want)
		})
	}
}

// TestGoodCodes checks which codes take an event, and which let it come again.
func TestGoodCodes(t *testing.T) {
	s, _ := newSender(t, "http://127.0.0.1/", newSecret(), nil)
	for code, want := range map[int]attempt{200: {}, 204: {}, 299: {}, 300: {}, 407: {}, 408: {retry: true}, 425: {retry: true}, 429: {retry: true}, 499: {}, 500: {retry: true}} {
		got := s.judge(&http.Response{StatusCode: code, Header: http.Header{}})
		if got.retry != want.retry || (got.err == nil) != (code < 300) {
			t.Errorf("%d: %+v", code, got)
		}
	}
}

// TestLogOfFailures checks that failures one after the other are one line a minute.
func TestLogOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{t: t, secret: newSecret(), answer: status(http.StatusGone)}
		s, log := newSender(t, "http://127.0.0.1/", e.secret, serve(t, e))
		end := start(t, s)
		for i := range 120 { // two minutes
			send(t, s, fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		end()
		expect(t, s, Counts{Failed: 120})
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("%d lines are logged", n)
		}
	})
}

// TestFailsAtOnce checks that an event is sent once to an endpoint that refuses it, and that no redirect
// is followed.
func TestFailsAtOnce(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect leads to %s", r.URL)
	}))
	defer elsewhere.Close()
	codes := []int{300, 301, 302, 303, 304, 305, 307, 308, 400, 401, 403, 404, 405, 409, 410, 413, 422, 451, 499}
	e := &endpoint{t: t, secret: newSecret(), answer: func(n int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(codes[n-1])
	}}
	server := httptest.NewServer(e)
	defer server.Close()
	s, log := newSender(t, server.URL, e.secret, nil)
	var want []string
	for _, code := range codes {
		want = append(want, fmt.Sprint(code))
	}
	send(t, s, want...)
	end := start(t, s)
	end()
	expect(t, s, Counts{Failed: int64(len(codes))})
	if got := ids(e.requests()); !slices.Equal(got, want) {
		t.Errorf("received %q", got)
	}
	if !strings.Contains(log.String(), `attempts=1 error="the endpoint answered 300 Multiple Choices, and redirects are not followed: set --webhook-url to the URL that takes events"`) {
		t.Errorf("the log is %s", log)
	}
}

// TestOtherAnswers checks answers that a transport passes on as they are: one that switches to another
// protocol, one without an end, one in pieces.
func TestOtherAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{t: t, secret: newSecret(), answer: func(n int, w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = fmt.Fprint(conn, []string{
				"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
				"HTTP/1.1 101 Switching Protocols\r\n\r\n",
				"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
				"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n",
				"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
			}[n-1])
			_, _ = conn.Read(make([]byte, 1)) // until the sender closes it
		}}
		s, _ := newSender(t, "http://127.0.0.1/", e.secret, serve(t, e))
		send(t, s, "switch", "plain-switch", "continue", "long", "pieces")
		end := start(t, s)
		before := time.Now()
		time.Sleep(time.Minute)
		end()
		expect(t, s, Counts{Sent: 3, Failed: 2})
		got := e.requests()
		// The long answer takes an attempt's time, and the connection of the second one is good for no other.
		if took := got[len(got)-1].at.Sub(before); len(got) != 5 || took > attemptTime+2*firstPause {
			t.Errorf("%q took %v", ids(got), took)
		}
	})
}

// TestFlood checks that of a long answer a few KiB are read, and that short ones leave the connection for
// the next event.
func TestFlood(t *testing.T) {
	conns, wrote := make(chan string, 10), make(chan int, 1)
	e := &endpoint{t: t, secret: newSecret(), answer: func(n int, w http.ResponseWriter, r *http.Request) {
		conns <- r.RemoteAddr
		size := 0
		for size == 0 || n == 3 && size < 1<<30 {
			k, err := w.Write(make([]byte, maxReply-1))
			if size += k; err != nil {
				wrote <- size
				return
			}
		}
	}}
	server := httptest.NewServer(e)
	defer server.Close()
	s, _ := newSender(t, server.URL, e.secret, nil)
	end := start(t, s)
	send(t, s, "first", "second", "flood", "last")
	first, second, third, last := <-conns, <-conns, <-conns, <-conns
	if first != second || second != third || third == last {
		t.Errorf("connections %q", []string{first, second, third, last})
	}
	if n := <-wrote; n > 100<<20 {
		t.Errorf("%d bytes found room on the way", n)
	}
	end()
	expect(t, s, Counts{Sent: 4})
}

// TestRetryAfter checks the pauses that an endpoint asks for.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "60": time.Minute, "61": time.Minute, "18446744073709551616": time.Minute,
		"-1": 0, "1.5": 0, "soon": 0, " 7": 0, "Mon, 02 Mar 2026 09:00:09 GMT": 9 * time.Second,
		"Mon, 02 Mar 2026 08:00:00 GMT": 0, "Tue, 03 Mar 2026 09:00:00 GMT": time.Minute, "Monday, 02-Mar-26 09:00:09 GMT": 9 * time.Second,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		answers := []struct {
			code int
			text string
		}{{429, "30"}, {503, time.Now().Add(80 * time.Second).UTC().Format(http.TimeFormat)}, {503, "0"}, {404, "50"}, {200, "50"}, {200, ""}}
		e := &endpoint{t: t, secret: newSecret(), answer: func(n int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", answers[n-1].text)
			w.WriteHeader(answers[n-1].code)
		}}
		s, _ := newSender(t, "http://127.0.0.1/", e.secret, serve(t, e))
		end := start(t, s)
		send(t, s, "refused", "second", "third")
		time.Sleep(5 * time.Minute)
		end()
		got := e.requests()
		if len(got) != len(answers) {
			t.Fatalf("received %q", ids(got))
		}
		for i, want := range []struct{ least, most time.Duration }{
			{30 * time.Second, 30 * time.Second}, {49 * time.Second, 50 * time.Second}, {2 * time.Second, 6 * time.Second}, {0, 0}, {0, 0},
		} {
			if waited := got[i+1].at.Sub(got[i].at); waited < want.least || waited > want.most {
				t.Errorf("attempt %d came after %v, want %v to %v", i+2, waited, want.least, want.most)
			}
		}
	})
}

// TestHangs checks that an endpoint that does not answer, or does not even greet, costs attempts of 5 s,
// never the sender of events, and the end a second.
func TestHangs(t *testing.T) {
	for name, dead := range map[string]bool{"it does not answer": false, "it accepts no connection": true} {
		synctest.Test(t, func(t *testing.T) {
			e := &endpoint{t: t, secret: newSecret(), answer: func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
			transport := serve(t, e)
			if dead {
				transport.DialContext = (&network{conns: make(chan net.Conn), closed: make(chan struct{})}).dial
			}
			s, log := newSender(t, "http://127.0.0.1/", e.secret, transport)
			end := start(t, s)
			for i := range maxQueued + 1 { // of which one is being delivered
				send(t, s, fmt.Sprint(i))
				synctest.Wait()
			}
			began := time.Now()
			expect(t, s, Counts{Queued: maxQueued + 1})
			if s.Send(Event{ID: "more"}) || time.Since(began) > 0 {
				t.Errorf("%s: an event is queued, or waits for %v", name, time.Since(began))
			}
			time.Sleep(maxAttempts*attemptTime + 2*time.Minute)
			if c := s.Counts(); c.Failed == 0 || !strings.Contains(log.String(), "the endpoint did not answer within 5s") {
				t.Errorf("%s: %+v, %s", name, c, log)
			}
			began = time.Now()
			end()
			if took := time.Since(began); took > graceTime {
				t.Errorf("%s: the end took %v", name, took)
			}
			if c := s.Counts(); c.Queued != 0 || c.Failed+c.Dropped != maxQueued+2 || c.Sent != 0 {
				t.Errorf("%s: %+v at the end", name, c)
			}
		})
	}
}

// TestSilentTLS checks that no goroutine keeps running for an endpoint that accepts connections and is
// silent on them.
func TestSilentTLS(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s, _ := newSender(t, "https://"+silent.Addr().String(), newSecret(), nil)
	end := start(t, s)
	send(t, s, "a")
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	end()
	expect(t, s, Counts{Dropped: 1})
}

// TestEnd checks that events that wait at the end are delivered within a second, up to the first that is
// not taken, and that a pause ends at once.
func TestEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(n int, w http.ResponseWriter, r *http.Request)
		before time.Duration // that the sender runs before its end
		want   Counts
		took   time.Duration
	}{
		{"a good endpoint", nil, 0, Counts{Sent: 20}, 0},
		{"one that refuses all", status(http.StatusForbidden), 0, Counts{Failed: 20}, 0},
		{"one that is slow", func(_ int, _ http.ResponseWriter, r *http.Request) { run.Sleep(r.Context(), 300*time.Millisecond) }, 0, Counts{Sent: 3, Dropped: 17}, graceTime},
		{"one in trouble", func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 4 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}, 0, Counts{Sent: 3, Dropped: 17}, 0},
		{"a pause", func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 6 {
				w.Header().Set("Retry-After", "60")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}, 10 * time.Second, Counts{Sent: 5, Dropped: 15}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &endpoint{t: t, secret: newSecret(), answer: c.answer}
			s, log := newSender(t, "http://127.0.0.1/", e.secret, serve(t, e))
			for i := range 20 {
				send(t, s, fmt.Sprint(i))
			}
			end := start(t, s)
			time.Sleep(c.before)
			began := time.Now()
			end()
			if took := time.Since(began); took != c.took {
				t.Errorf("%s: the end took %v, want %v", c.name, took, c.took)
			}
			expect(t, s, c.want)
			line := fmt.Sprintf(`msg="failed to deliver the last events to the webhook" host=127.0.0.1 events=%d`, c.want.Dropped)
			if strings.Contains(log.String(), line) != (c.want.Dropped > 0) {
				t.Errorf("%s: the log is %s", c.name, log)
			}
			if reason := map[string]string{"one in trouble": "503", "a pause": "503", "one that is slow": errEnded.Error()}[c.name]; !strings.Contains(log.String(), reason) {
				t.Errorf("%s: the log is without %q: %s", c.name, reason, log)
			}
		})
	}
}
