package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"github.com/limitgate/limitgate/internal/syncbuffer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newSecret returns a secret, as a line of a secret file has it.
func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// request is what an endpoint received.
type request struct {
	id, signature, timestamp, body string
	header                         http.Header
	at                             time.Time
}

// endpoint records requests, and verifies that each has the signature of a secret.
type endpoint struct {
	t      testing.TB
	secret string
	answer func(n int, w http.ResponseWriter, r *http.Request) // the n-th request, from 1; nil takes all

	mu  sync.Mutex // guards got
	got []request
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		e.t.Errorf("%s, %v", r.Method, err)
	}
	hook, err := standardwebhooks.NewWebhook(e.secret)
	if err == nil {
		err = hook.Verify(body, r.Header)
	}
	if err != nil {
		e.t.Errorf("%s is not signed: %v", body, err)
	}
	e.mu.Lock()
	e.got = append(e.got, request{r.Header.Get("webhook-id"), r.Header.Get("webhook-signature"), r.Header.Get("webhook-timestamp"), string(body), r.Header, time.Now()})
	n := len(e.got)
	e.mu.Unlock()
	if e.answer != nil {
		e.answer(n, w, r)
	}
}

// requests returns what was received until now.
func (e *endpoint) requests() []request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

// ids returns the ids of requests.
func ids(all []request) (ids []string) {
	for _, r := range all {
		ids = append(ids, r.id)
	}
	return ids
}

// status returns an answer with a status.
func status(code int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// newSender returns a sender to a URL with the secrets of a text, and its log.
func newSender(t testing.TB, url, secrets string, transport http.RoundTripper) (*Sender, *syncbuffer.Buffer) {
	t.Helper()
	log := new(syncbuffer.Buffer)
	s, err := New(Options{
		URL: url, SecretFile: "secrets", Version: "1.2.3", Transport: transport, Log: slog.New(slog.NewTextHandler(log, nil)),
		ReadFile: func(string) (string, error) { return secrets, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

// start runs a sender, and returns a function that ends it.
func start(t testing.TB, s *Sender) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// send sends events with ids.
func send(t testing.TB, s *Sender, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if !s.Send(Event{ID: id, Type: "limit.warned", At: time.Now(), Data: map[string]int{"left": 3}}) {
			t.Errorf("%s is not queued", id)
		}
	}
}

// expect checks the counts of a sender.
func expect(t testing.TB, s *Sender, want Counts) {
	t.Helper()
	if got := s.Counts(); got != want {
		t.Errorf("the counts are %+v, want %+v", got, want)
	}
}

// network is a network in memory. In a bubble of package synctest time passes while its connections
// wait.
type network struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// serve serves an endpoint in memory until the test ends, and returns a transport to it.
func serve(t testing.TB, handler http.Handler) *http.Transport {
	n := &network{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = server.Serve(n) }()
	t.Cleanup(func() { _ = server.Close() })
	transport := newTransport()
	transport.DialContext = n.dial
	return transport
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case n.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Accept implements net.Listener.
func (n *network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.conns:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements net.Listener.
func (*network) Addr() net.Addr { return new(net.UnixAddr) }
