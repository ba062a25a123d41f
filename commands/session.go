package commands

import (
	"context"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limiter"
)

// Limits says which limits are in use and can load them anew.
type Limits interface {
	// Status describes the limits in use.
	Status() LimitsStatus
	// Reload loads the limits again. The error is a sentence for the operator.
	Reload() error
	// Promote has limits that are tried on some tenants decide for all of them, and Abort
	// for none. The error is a sentence for the operator.
	Promote() error
	Abort() error
}

// LimitsStatus describes the limits in use.
type LimitsStatus struct {
	Version string
	Source  string // where they come from
	Trial   string // what is tried on some of the tenants, or ""
	Loaded  time.Time
	// Error says why a newer version could not be loaded; it is empty while the
	// newest one is in use.
	Error string
}

// Options configure the commands of all sessions.
type Options struct {
	Limiter *limiter.Limiter
	Limits  Limits
	Version string // of this program
	Store   string // what it decides on: "memory", "redis" or "cluster"
	Now     func() time.Time
	// Shards tells of the masters of the store; nil stands for none.
	Shards func() []Shard
	// Announce is the host:port that cluster clients are told; empty is the
	// address that their connection came in on.
	Announce string
	// Settings are values for CONFIG GET, by the names that Redis has for them,
	// beside those that are the same everywhere.
	Settings map[string]string
}

// Shard is what there is to tell of one master of the store.
type Shard struct {
	Addr    string
	Breaker string // "closed", "open" or "half_open"
	Error   string // why the last call failed, or ""
	// NextProbe is in how long the next call is let through to an open one.
	NextProbe time.Duration
}

// Handler makes sessions and knows the ones that are open. Any number of
// goroutines may use it.
type Handler struct {
	opts     Options
	table    map[string]*command
	settings map[string]string // for CONFIG GET
	started  time.Time
	runID    string // of 40 digits, as a cluster's node has

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
	if opts.Shards == nil {
		opts.Shards = func() []Shard { return nil }
	}
	h := &Handler{
		opts: opts, table: newTable(), settings: newSettings(opts.Settings), started: opts.Now(), runID: newRunID(),
		sessions: map[int64]*Session{}, inlineLimits: newInlineLimits(),
	}
	h.resp2, h.resp3 = h.newRendered(false), h.newRendered(true)
	return h
}

// Session answers the commands of one connection. It belongs to one goroutine;
// the fields under mu may be read by others.
type Session struct {
	h           *Handler
	id          int64
	addr        string
	local       string
	kill        func()
	created     time.Time
	*scratch    // nil while nothing is answered
	out         reply
	quit        bool
	tx          *transaction // between MULTI and EXEC, else nil
	replyMode   replyMode
	replyForced bool // the command that is answered is answered in spite of hush
	tracked     tracking

	mu      sync.Mutex // guards what CLIENT LIST tells of a session
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
	// Kill closes the connection; any goroutine may call it.
	Kill func()
}

// NewSession returns the session of a new connection.
func (h *Handler) NewSession(p Peer) *Session {
	now := h.opts.Now()
	s := &Session{h: h, id: p.ID, kill: p.Kill, created: now, lastAt: now}
	if p.Addr != nil {
		s.addr = p.Addr.String()
	}
	if p.Local != nil {
		s.local = p.Local.String()
	}
	h.mu.Lock()
	h.sessions[s.id] = s
	h.mu.Unlock()
	return s
}

// Close forgets the session.
func (s *Session) Close() {
	s.h.mu.Lock()
	delete(s.h.sessions, s.id)
	s.h.mu.Unlock()
}

// largeReply is the size from which the reply to a pipeline is sent before it is
// continued: what waits for a client that does not read is this and one reply more.
const largeReply = 64 << 10

// maxReply bounds the reply to one command that is made of parts, as that to EXEC is:
// some answer much more than they take. Decisions are small and always given.
const maxReply = 256 << 10

// Serve answers cmds in order, appending to out, and returns how many. Checks that
// follow each other are decided as one batch. It stops before a command that is heavier
// than the first, behind a long one, and where the reply is large before one that
// is no decision, since decisions are small. With quit the connection ends after the
// reply.
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
				runtime.Gosched() // others may have less to do
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

// stopsBefore reports whether a command is for another call of Serve than one that
// began with a command of a weight.
func (s *Session) stopsBefore(first weight, args [][]byte) bool {
	return first == long || s.weigh(args) > first || len(s.out.buf) >= largeReply && !isDecision(args)
}

// serve answers one command, or keeps it for EXEC.
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

// recordLastCommand remembers the last command for CLIENT LIST.
func (s *Session) recordLastCommand(cmds [][][]byte) {
	if len(cmds) == 0 || len(cmds[len(cmds)-1]) == 0 {
		return
	}
	name := cmds[len(cmds)-1][0]
	now := s.h.opts.Now()
	s.mu.Lock()
	if s.last != string(name) {
		s.last = quote(name)
	}
	s.lastAt = now
	s.mu.Unlock()
}

// errHungUp answers a command that is not begun for a client that may have gone.
const errHungUp = "ERR not run: the client has closed its side of the connection"

// run answers any command but those that ask for decisions.
func (s *Session) run(ctx context.Context, args [][]byte) {
	c, complaint := s.h.find(args)
	if complaint != "" {
		s.out.error(complaint)
		return
	}
	if ctx.Err() != nil && s.h.weigh(args) == long {
		s.out.error(errHungUp)
		return
	}
	c.run(ctx, s, args)
}
