package webhook

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/logthrottle"
)

const (
	// maxQueued bounds the events that wait. With maxBody it bounds their memory to 16 MiB, and it is
	// more than the events of a restart of the endpoint, unless a thousand buckets run low in it.
	maxQueued = 1024
	// maxWait bounds how long an event waits for those before it: while the endpoint is away each of
	// these takes a minute, and old events help nobody.
	maxWait = 10 * time.Minute
	// logPause is the least time between two lines of the log about the same trouble.
	logPause = time.Minute
)

// Options configure a Sender.
type Options struct {
	// URL is the https URL of the endpoint, or an http URL of this machine.
	URL string
	// SecretFile is the path of the secrets, one a line, see parseSecrets. ReadFile reads it before
	// each attempt, so that a new secret needs no restart.
	SecretFile string
	ReadFile   func(path string) (string, error)
	// Version is that of the program, for the header User-Agent.
	Version string
	Log     *slog.Logger
	// Transport carries the requests; nil is one of the Sender's own. A transport, unlike a client,
	// follows no redirects: a signed request must not go elsewhere.
	Transport http.RoundTripper
	// Now returns the time; nil is time.Now.
	Now func() time.Time
}

// Sender delivers events while Run runs. It is safe for concurrent use.
type Sender struct {
	url       string
	host      string // the part of the URL that the log has: others may be secret
	agent     string
	secrets   *secrets // for Run alone
	transport http.RoundTripper
	log       *slog.Logger
	now       func() time.Time
	queue     chan message

	last error // of the latest attempt, nil if it succeeded; for Run alone

	sent, failed, dropped, queued atomic.Int64
	failures, drops               logthrottle.Throttle

	mu    sync.Mutex // guards ended: nothing is queued after it is true
	ended bool
}

// Counts are numbers of events.
type Counts struct {
	// Sent and Failed are those that the endpoint took, and those that it did not take in any
	// attempt. Dropped are those that found no room, could not be encoded, waited too long, or were left
	// at the end.
	Sent, Failed, Dropped int64
	// Queued are those that wait now, the one that is being delivered among them.
	Queued int64
}

// New returns a sender, or an error if the URL or the secrets cannot be used.
func New(o Options) (*Sender, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("open webhook: its URL has no host") // the URL may contain a secret
	}
	secrets, err := openSecrets(o)
	if err != nil {
		return nil, fmt.Errorf("open webhook: %w", err)
	}
	s := &Sender{
		failures: logthrottle.Throttle{Period: logPause, Now: o.Now}, drops: logthrottle.Throttle{Period: logPause, Now: o.Now},
		url: o.URL, host: u.Host, agent: "limitgate/" + o.Version, secrets: secrets,
		transport: o.Transport, log: o.Log, now: o.Now, queue: make(chan message, maxQueued),
	}
	if s.transport == nil {
		s.transport = newTransport()
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// Send queues an event, and never waits. It returns false for an event that is dropped: it finds no
// room, is malformed, or comes after the end of Run.
func (s *Sender) Send(e Event) (queued bool) {
	err := errFull
	if len(s.queue) < cap(s.queue) { // events of a flood that find no room are not encoded
		var m message
		if m, err = newMessage(e); err == nil {
			m.since = s.now()
			err = s.add(m)
		}
	}
	if err != nil {
		n := s.dropped.Add(1)
		if s.drops.Allow() {
			s.log.Warn("dropping an event for the webhook", "type", e.Type, "error", err, "dropped", n)
		}
	}
	return err == nil
}

var (
	errFull  = fmt.Errorf("%d events wait for the endpoint already", maxQueued)
	errEnded = errors.New("the proxy is ending")
	errOld   = fmt.Errorf("it waited more than %v for the events before it", maxWait)
)

// add queues a message.
func (s *Sender) add(m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return errEnded
	}
	s.queued.Add(1) // before Run can count its outcome
	select {
	case s.queue <- m:
		return nil
	default:
		s.queued.Add(-1)
		return errFull
	}
}

// Counts returns how many events there were since the start, and how many wait.
func (s *Sender) Counts() Counts {
	return Counts{Sent: s.sent.Load(), Failed: s.failed.Load(), Dropped: s.dropped.Load(), Queued: s.queued.Load()}
}
