package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestPage checks that the receiver of docs/operations.md is the one of the tests.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("receiver_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "of docs/operations.md.\n")
	if code == "" || !strings.Contains(string(page), "```go\n"+code+"```\n") {
		t.Errorf("docs/operations.md lacks\n%s", code)
	}
}

// TestDelivery checks that the receiver of the documentation takes events by TLS, in their order, with
// the headers and the body that Standard Webhooks asks for.
func TestDelivery(t *testing.T) {
	secret := newSecret()
	type taken struct{ id, body string }
	took := make(chan taken, 10)
	receiver, err := newReceiver(secret, func(id string, event []byte) error {
		took <- taken{id, string(event)}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	header := make(chan http.Header, 10)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header <- r.Header
		receiver(w, r)
	}))
	defer server.Close()
	s, log := newSender(t, server.URL+"/limits?a=b", secret, server.Client().Transport)
	end := start(t, s)
	at := time.Date(2026, 3, 2, 10, 0, 4, 5e8, time.FixedZone("CET", 3600))
	for i := range 5 {
		if !s.Send(Event{ID: fmt.Sprint("event-", i), Type: "limit.warned", At: at, Data: struct {
			Tenant string `json:"tenant"`
		}{"acme"}}) {
			t.Error("it is not queued")
		}
	}
	for i := range 5 {
		want := taken{fmt.Sprint("event-", i), `{"type":"limit.warned","timestamp":"2026-03-02T09:00:04.5Z","data":{"tenant":"acme"}}`}
		if got := <-took; got != want {
			t.Errorf("received %+v, want %+v", got, want)
		}
		if h := <-header; h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "limitgate/1.2.3" || len(h["Webhook-Signature"]) != 1 {
			t.Errorf("the header is %v", h)
		}
	}
	end()
	expect(t, s, Counts{Sent: 5})
	if s.Send(Event{ID: "late"}) {
		t.Error("an event after the end is queued")
	}
	expect(t, s, Counts{Sent: 5, Dropped: 1})
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "the proxy is ending") {
		t.Errorf("the log is %s", log)
	}
}

// TestNew checks that a sender without a usable URL or secret is an error, which has no part of them.
func TestNew(t *testing.T) {
	for _, c := range []struct{ url, text, want string }{
		{"https://a/hunter2\x00", newSecret(), "open webhook: its URL has no host"},
		{"hunter2", newSecret(), "open webhook: its URL has no host"},
		{"https://a/", "hunter2", "open webhook: read secrets of secrets: line 1 does not begin with whsec_"},
		{"https://a/", "", "open webhook: stat secrets: no such file"},
	} {
		_, err := New(Options{URL: c.url, SecretFile: "secrets", ReadFile: func(path string) (string, error) {
			if c.text == "" {
				return "", fmt.Errorf("stat %s: no such file", path)
			}
			return c.text, nil
		}})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want %s", c.url, err, c.want)
		}
	}
}

// TestFullQueue checks that the newest events are dropped when too many wait, that malformed ones are,
// and that the log has a line a minute of them.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{t: t, secret: newSecret()}
		s, log := newSender(t, "http://127.0.0.1/", e.secret, serve(t, e))
		var want []string
		for i := range maxQueued {
			want = append(want, fmt.Sprint("event-", i))
		}
		send(t, s, want[:maxQueued-1]...)
		for _, bad := range []Event{
			{ID: "", Data: 1},
			{ID: "a.b", Data: 1},
			{ID: "a\r\nX: y", Data: 1},
			{ID: strings.Repeat("a", maxID+1), Data: 1},
			{ID: "a", Data: func() {}},
			{ID: "a", Data: failing{}},
			{ID: "a", Data: strings.Repeat("x", maxBody)},
			{ID: "a", At: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
		} {
			if s.Send(bad) {
				t.Errorf("%.100v is queued", bad)
			}
		}
		send(t, s, want[maxQueued-1])
		for range 1000 {
			if s.Send(Event{ID: "more", Data: failing{t}}) {
				t.Error("an event without room is queued")
			}
		}
		expect(t, s, Counts{Queued: maxQueued, Dropped: 1008})
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%d lines are logged at once", n)
		}
		time.Sleep(logPause)
		s.Send(Event{ID: "more"})
		if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `error="1024 events wait for the endpoint already" dropped=1009`) {
			t.Errorf("the log is %s", got)
		}
		end := start(t, s)
		synctest.Wait()
		end()
		expect(t, s, Counts{Sent: maxQueued, Dropped: 1009})
		if got := ids(e.requests()); !slices.Equal(got, want) {
			t.Errorf("received %q", got)
		}
	})
}

// failing has no form in JSON. With a test it must not be asked for one.
type failing struct{ t *testing.T }

// MarshalJSON implements json.Marshaler.
func (f failing) MarshalJSON() ([]byte, error) {
	if f.t != nil {
		f.t.Error("an event without room is encoded")
	}
	return nil, errors.New("it fails")
}

// TestLastPlace checks that an event counts as waiting only if it got the last place of the queue.
func TestLastPlace(t *testing.T) {
	s, _ := newSender(t, "http://127.0.0.1/", newSecret(), nil)
	for range maxQueued {
		if err := s.add(message{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.add(message{}); !errors.Is(err, errFull) {
		t.Errorf("one more: %v", err)
	}
	expect(t, s, Counts{Queued: maxQueued})
}

// TestID checks which ids an event may have.
func TestID(t *testing.T) {
	for _, id := range []string{"a", "Z", "0", "9", "z-A_5", strings.Repeat("a", maxID)} {
		if _, err := newMessage(Event{ID: id}); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, c := range "`{@[/:.,+ é" {
		if _, err := newMessage(Event{ID: "a" + string(c)}); err == nil {
			t.Errorf("%q is taken", c)
		}
	}
}

// TestMarkup checks that characters of markup are one byte each, as they were sent.
func TestMarkup(t *testing.T) {
	m, err := newMessage(Event{ID: "a", Data: "<&>"})
	if err != nil || !strings.Contains(string(m.body), `"data":"<&>"}`) {
		t.Errorf("%s, %v", m.body, err)
	}
}

// TestLargestBody checks that a body may have the largest size, and no byte more.
func TestLargestBody(t *testing.T) {
	body, err := json.Marshal(payload{Data: ""})
	if err != nil {
		t.Fatal(err)
	}
	for over, fits := range []bool{true, false} {
		m, err := newMessage(Event{ID: "a", Data: strings.Repeat("x", maxBody-len(body)+over)})
		if (err == nil) != fits || fits && len(m.body) != maxBody {
			t.Errorf("%d bytes over: %d bytes, %v", over, len(m.body), err)
		}
	}
}

// TestCountsAddUp checks that every event has one outcome, however the sending of events, their
// deliveries and the end of the sender meet.
func TestCountsAddUp(t *testing.T) {
	const senders, each, first = 8, 300, 50
	some := make(chan struct{})
	e := &endpoint{t: t, secret: newSecret(), answer: func(n int, w http.ResponseWriter, _ *http.Request) {
		if n%3 == 0 {
			w.WriteHeader(http.StatusBadRequest)
		}
		if n == first {
			close(some)
		}
	}}
	server := httptest.NewServer(e)
	defer server.Close()
	s, _ := newSender(t, server.URL, e.secret, nil)
	end := start(t, s)
	var sending sync.WaitGroup
	for i := range senders {
		sending.Go(func() {
			for j := range each {
				s.Send(Event{ID: fmt.Sprint(i, "-", j), Data: j})
			}
		})
	}
	<-some
	end()
	sending.Wait()
	c := s.Counts()
	if c.Sent+c.Failed+c.Dropped != senders*each || c.Queued != 0 || c.Sent < first/2 || int(c.Sent+c.Failed) > len(e.requests()) {
		t.Errorf("%+v, with %d requests", c, len(e.requests()))
	}
}
