// Package middleware limits the requests of a net/http server by Limitgate, which it asks by a
// client of go-redis or over HTTP.
//
// A request that is denied gets 429 with the header fields of the limit. A request that Limitgate
// does not decide in time goes on, unless FailClosed is set. A mistake in the call, such as a tenant
// that is too long, gets 500: it is no way past the limits.
package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"
)

// DefaultTimeout is the time for a decision unless Options have another one.
const DefaultTimeout = 250 * time.Millisecond

// Client is a client of go-redis, such as *redis.Client.
type Client interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// Options configure the middleware. One of Client and URL is needed, and Tenant.
type Options struct {
	Client Client
	// URL is the address of limitgate serve --http, such as http://127.0.0.1:8080, and
	// Authorization the header of that name. HTTP sends the requests; nil is a client of its own.
	URL, Authorization string
	HTTP               *http.Client
	// Timeout bounds the wait for a decision; 0 is DefaultTimeout.
	Timeout time.Duration

	// Tenant returns the tenant of a request.
	Tenant func(*http.Request) string
	// Op returns the operation. Nil is the pattern of http.ServeMux, which only handlers behind it
	// know, and otherwise the method and the path.
	Op func(*http.Request) string
	// IP returns the address of the client. Nil is that of the peer.
	IP func(*http.Request) string
	// Cost returns the cost; nil is 1. Dims returns dimensions such as user; it may be nil.
	Cost func(*http.Request) int64
	Dims func(*http.Request) map[string]string
	// Settle, unless nil, returns the true cost when the handler has returned: Cost is an estimate
	// then. Status is that of the answer, and written the number of bytes of its body.
	Settle func(r *http.Request, status int, written int64) int64

	// FailClosed answers 503 when Limitgate does not decide in time.
	FailClosed bool
	// OnDenied answers a denied request, whose header fields are set; nil is a problem of RFC 9457.
	OnDenied func(w http.ResponseWriter, r *http.Request, d *Decision)
	// OnError receives errors; nil logs them.
	OnError func(r *http.Request, err error)
}

var (
	errOptions = errors.New("limitgate middleware: give a Client or a URL, and a Tenant")
	errTimeout = errors.New("limitgate middleware: set ContextTimeoutEnabled in the options of the Client: without it go-redis does not keep the Timeout")
	errURL     = errors.New("limitgate middleware: URL is the address of limitgate serve --http, such as http://127.0.0.1:8080")
)

type decisionKey struct{}

// FromContext returns the decision about the request of a handler, or nil.
func FromContext(ctx context.Context) *Decision {
	d, _ := ctx.Value(decisionKey{}).(*Decision)
	return d
}

// New returns middleware. It may wrap any number of handlers, which may run concurrently.
func New(o Options) (func(http.Handler) http.Handler, error) {
	if (o.Client == nil) == (o.URL == "") || o.Tenant == nil {
		return nil, errOptions
	}
	if c, ok := o.Client.(interface{ Options() *redis.Options }); ok && !c.Options().ContextTimeoutEnabled {
		return nil, errTimeout
	}
	m := &middleware{Options: o, ask: overRedis{o.Client}}
	if o.Client == nil {
		if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errURL
		}
		if o.HTTP == nil {
			o.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}}
		}
		m.ask = overHTTP{strings.TrimRight(o.URL, "/"), o.HTTP, o.Authorization}
	}
	if m.Timeout == 0 {
		m.Timeout = DefaultTimeout
	}
	if m.OnError == nil {
		m.OnError = func(r *http.Request, err error) { slog.ErrorContext(r.Context(), "check limits", "error", err) }
	}
	return m.wrap, nil
}

type middleware struct {
	Options
	ask asker
}

func (m *middleware) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := m.decide(r)
		switch {
		case err == nil:
		case errors.Is(err, ErrCall):
			m.OnError(r, err)
			http.Error(w, "internal error", http.StatusInternalServerError)
			return
		case m.FailClosed:
			m.OnError(r, err)
			http.Error(w, "the limits of this request cannot be checked", http.StatusServiceUnavailable)
			return
		default:
			m.OnError(r, err)
			next.ServeHTTP(w, r)
			return
		}
		for name, values := range d.Header {
			w.Header()[name] = values
		}
		if !d.Allowed {
			m.deny(w, r, d)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), decisionKey{}, d))
		if m.Settle == nil || d.id == "" {
			next.ServeHTTP(w, r)
			return
		}
		counted := &counter{ResponseWriter: w, status: http.StatusOK}
		defer m.settle(r, d.id, counted) // also if the handler panics
		next.ServeHTTP(counted, r)
	})
}

// decide asks for the decision about a request.
func (m *middleware) decide(r *http.Request) (*Decision, error) {
	// A client that goes away must not end the question: its request would go on without an answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), m.Timeout)
	defer cancel()
	q := &request{tenant: m.Tenant(r), op: r.Pattern, cost: 1, reserve: m.Settle != nil}
	switch {
	case m.Op != nil:
		q.op = m.Op(r)
	case q.op == "":
		q.op = opOf(r)
	}
	if m.IP != nil {
		q.ip = m.IP(r)
	} else {
		q.ip = peer(r.RemoteAddr)
	}
	if m.Cost != nil {
		q.cost = m.Cost(r)
	}
	if m.Dims != nil {
		q.dims = m.Dims(r)
	}
	d, err := m.ask.decide(ctx, q)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("limitgate did not answer within %s: %w", m.Timeout, err)
	}
	return d, err
}

// peer returns the address of a peer, which may have a port and a zone, or "".
func peer(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	return addr.WithZone("").String()
}

// maxOp is the maximum length of an op, in bytes.
const maxOp = 1024

// opOf returns the method and the path of a request, which its client chose: without control
// characters, and no longer than an op may be.
func opOf(r *http.Request) string {
	op := strings.ToValidUTF8(r.Method+" "+r.URL.Path, "")
	op = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, op)
	if len(op) > maxOp {
		op = strings.ToValidUTF8(op[:maxOp], "")
	}
	return op
}

func (m *middleware) deny(w http.ResponseWriter, r *http.Request, d *Decision) {
	if m.OnDenied != nil {
		m.OnDenied(w, r, d)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusTooManyRequests)
	problem := map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":  "Request cannot be satisfied as assigned quota has been exceeded",
		"status": http.StatusTooManyRequests,
	}
	if d.LimitID != "" {
		problem["violated-policies"] = []string{d.LimitID}
	}
	_ = json.NewEncoder(w).Encode(problem)
}

// settle commits the true cost. The client may have gone, and its context with it.
func (m *middleware) settle(r *http.Request, id string, w *counter) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), m.Timeout)
	defer cancel()
	if err := m.ask.commit(ctx, id, max(0, m.Settle(r, w.status, w.written))); err != nil {
		m.OnError(r, err)
	}
}

// counter records the status and the size of an answer.
type counter struct {
	http.ResponseWriter
	status  int
	written int64
}

func (c *counter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.written += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the writer below.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
