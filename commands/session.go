package commands

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/bypass"
	"github.com/limitgate/limitgate/internal/denials"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limiter"
)

// Limits reports which limits are in use and reloads them.
type Limits interface {
	// Status describes the limits in use.
	Status() LimitsStatus
	// Reload loads the limits again. The error is a sentence for the operator.
	Reload() error
	// Promote applies limits on trial to all tenants, and Abort ends the trial. The error
	// is a sentence for the operator.
	Promote() error
	Abort() error
}

// LimitsStatus describes the limits in use.
type LimitsStatus struct {
	Version string
	Source  string // where they come from
	Trial   string // description of the limits on trial, or ""
	Loaded  time.Time
	// Error is the reason why a newer version could not be loaded; it is empty while the
	// newest one is in use.
	Error string
}

// Options configure the commands of all sessions.
type Options struct {
	Limiter *limiter.Limiter
	// Denials returns the last n denials of a sample, the newest first; nil means none.
	Denials func(n int) []denials.Denial
	// Activity returns what the proxy has decided, for INFO; nil leaves that out.
	Activity func() Activity
	Limits   Limits
	Version  string // of this program
	Store    string // the store: "memory", "redis" or "cluster"
	Now      func() time.Time
	// Shards describes the masters of the store; nil means none.
	Shards func() []Shard
	// Announce is the host:port that cluster clients receive; if it is empty they receive
	// the address on which their connection came in.
	Announce string
	// Users checks the passwords of clients and their rights. Nil means that clients need
	// not authenticate, and may do everything.
	Users *users.Authenticator
	// ReloadUsers reads the file of users again and calls ReplaceUsers. The error is a
	// sentence for the operator. Nil means that there is no file.
	ReloadUsers func() error
	// Bypass checks the tokens of requests that pass the limits. Nil refuses them.
	Bypass *bypass.Tokens
	// LogLevel is the level of the log, which CONFIG SET loglevel changes. Nil means that it is fixed.
	LogLevel *slog.LevelVar
	// ShortHold is called with each TTL that was most likely meant in seconds: one below half a second, and such as 600. Nil
	// means that it is not of interest.
	ShortHold func(ttl time.Duration)
	// Settings are values for CONFIG GET, by their names in Redis, in addition to those
	// that do not depend on the proxy.
	Settings map[string]string
}

// Shard describes one master of the store.
type Shard struct {
	Addr    string
	Breaker string // "closed", "open" or "half_open"
	Error   string // why the last call failed, or "" if it succeeded
	// Failing is the time since the first failure of those without a success between, or 0.
	Failing time.Duration
	// NextProbe is the time until an open breaker lets the next call through.
	NextProbe time.Duration
}

// Handler creates sessions and holds the open ones. It is safe for concurrent use.
type Handler struct {
	opts  Options
	table map[string]*command
	// decisionCommands are those of the dialects.
	decisionCommands [len(dialectNames)]*command
	settings         map[string]string // for CONFIG GET
	started          time.Time
	runID            string // 40 digits, like the id of a cluster's node

	mu       sync.Mutex // guards sessions
	sessions map[int64]*Session

	inlineLimits *inlineLimits

	resp2, resp3 func() *rendered
}

// NewHandler returns a handler.
func NewHandler(opts Options) *Handler {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Denials == nil {
		opts.Denials = func(int) []denials.Denial { return nil }
	}
	if opts.ShortHold == nil {
		opts.ShortHold = func(time.Duration) {}
	}
	if opts.Shards == nil {
		opts.Shards = func() []Shard { return nil }
	}
	h := &Handler{
		opts: opts, table: commandTable(), settings: newSettings(opts), started: opts.Now(), runID: newRunID(),
		sessions: map[int64]*Session{}, inlineLimits: newInlineLimits(),
	}
	for d, name := range dialectNames {
		h.decisionCommands[d] = h.table[name]
	}
	h.resp2, h.resp3 = h.newRendered(false), h.newRendered(true)
	return h
}

// Session answers the commands of one connection. It belongs to one goroutine; other
// goroutines may read the fields under mu.
type Session struct {
	h                *Handler
	id               int64
	addr             string
	local            string
	kill             func()
	setAuthenticated func(bool) // see Peer
	certificate      *x509.Certificate
	created          time.Time
	*scratch         // nil while no command is answered
	out              reply
	quit             bool
	tx               *transaction // between MULTI and EXEC, otherwise nil
	replyMode        replyMode
	replyForced      bool // the present command is answered whatever the reply mode
	tracked          tracking
	revoked          atomic.Bool // the user has lost its rights

	mu sync.Mutex // guards the fields that other sessions read
	// user is nil until the client has authenticated. Only the session changes it.
	user    *users.User
	name    string
	libName string
	libVer  string
	last    string    // the last command
	lastAt  time.Time // when it came
	resp3   bool
}

// Peer describes a connection to its session.
type Peer struct {
	ID          int64
	Addr, Local net.Addr
	// Kill closes the connection. It is safe for concurrent use.
	Kill func()
	// SetAuthenticated, unless nil, is called when the client has authenticated, or has
	// not any more.
	SetAuthenticated func(bool)
	// Certificate is the client's verified certificate, or nil.
	Certificate *x509.Certificate
}

// NewSession returns the session of a new connection.
func (h *Handler) NewSession(p Peer) *Session {
	now := h.opts.Now()
	s := &Session{h: h, id: p.ID, kill: p.Kill, setAuthenticated: p.SetAuthenticated, certificate: p.Certificate, created: now, lastAt: now}
	if p.Addr != nil {
		s.addr = p.Addr.String()
	}
	if p.Local != nil {
		s.local = p.Local.String()
	}
	h.mu.Lock()
	h.sessions[s.id] = s
	h.mu.Unlock()
	s.logOut()
	return s
}

// Close removes the session from its handler.
func (s *Session) Close() {
	s.h.mu.Lock()
	delete(s.h.sessions, s.id)
	s.h.mu.Unlock()
}

// largeReply is the size from which the reply to a pipeline is sent before it is
// continued: for a client that does not read, this and one more reply are held.
const largeReply = 64 << 10

// maxReply is the maximum size of the reply to one command that consists of parts, such
// as EXEC: for some commands the reply is much larger than the request. Decisions are
// small and always written.
const maxReply = 256 << 10

// Serve answers cmds in order, appending to out, and returns their number. Consecutive
// checks are decided as one batch. Serve stops before a command that is heavier than the
// first, after a long one, and, once the reply is large, before a command that is not a
// decision, since decisions are small. With quit the connection ends after the reply.
func (s *Session) Serve(ctx context.Context, cmds [][][]byte, out []byte) (reply []byte, served int, quit bool) {
	s.out.buf = out
	s.takeScratch()
	s.recordLastCommand(cmds)
	first := s.weigh(cmds[0])
	for _, args := range cmds {
		if served > 0 {
			if s.stopsBefore(first, args) {
				break
			}
			if first != light && !isDecision(args) {
				runtime.Gosched() // lets goroutines with less to do run first
			}
		}
		switch {
		case len(args) == 0:
		case s.replyMode != replyOn:
			s.serveSilently(ctx, args)
		default:
			s.serve(ctx, args)
		}
		served++
		if s.quit {
			break
		}
	}
	s.decide()
	s.giveScratch()
	reply = s.out.buf
	s.out.buf = nil
	return reply, served, s.quit
}

// stopsBefore reports whether a command must not be served in a call of Serve that began
// with a command of weight first.
func (s *Session) stopsBefore(first weight, args [][]byte) bool {
	return first == long || s.weigh(args) > first || len(s.out.buf) >= largeReply && !isDecision(args)
}

// serve answers one command, or queues it for EXEC.
func (s *Session) serve(ctx context.Context, args [][]byte) {
	if s.tx == nil || !s.queue(args) {
		s.answer(ctx, args)
	}
}

// answer answers one command, or adds it to the batch of checks.
func (s *Session) answer(ctx context.Context, args [][]byte) {
	if form, ok := dialectOf(args[0]); ok {
		s.add(form, args)
		return
	}
	s.decide()
	s.run(ctx, args)
}

// recordLastCommand records the last command for CLIENT LIST.
func (s *Session) recordLastCommand(cmds [][][]byte) {
	if len(cmds) == 0 || len(cmds[len(cmds)-1]) == 0 {
		return
	}
	s.recordLast(cmds[len(cmds)-1][0])
}

// recordLast records the name of the last command.
func (s *Session) recordLast(name []byte) {
	now := s.h.opts.Now()
	s.mu.Lock()
	if s.last != string(name) {
		s.last = quote(name)
	}
	s.lastAt = now
	s.mu.Unlock()
}

// errHungUp is the reply to a command that is not started, as its client may be gone.
const errHungUp = "ERR not run: the client has closed its side of the connection"

// run answers any command except those that ask for decisions.
func (s *Session) run(ctx context.Context, args [][]byte) {
	c, errReply := s.h.find(args)
	if errReply != "" {
		s.out.error(errReply)
		return
	}
	if errReply = s.permit(c, args); errReply != "" {
		s.out.error(errReply)
		return
	}
	if ctx.Err() != nil && s.h.weigh(args) == long {
		s.out.error(errHungUp)
		return
	}
	c.run(ctx, s, args)
}
