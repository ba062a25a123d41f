package commands

import (
	"context"
	"crypto/x509"
	"net/netip"
	"sync"

	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/limit"
)

// Answer is the answer to a command that asks for a decision.
type Answer struct {
	limit.Decision
	// Held is the id under which a reservation or a slot is settled, or empty.
	Held string
	// Error is the text of the error reply, or empty if there is a decision.
	Error string
}

// calls are sessions of no connection, which belong to one call at a time.
var calls = sync.Pool{New: func() any { return new(Session) }}

// beginCall returns a session of a user at peer for one call, which the caller ends by endCall. A
// session whose call has panicked is not used again.
func (h *Handler) beginCall(u *users.User, peer netip.Addr) *Session {
	s := calls.Get().(*Session)
	s.h, s.user, s.addr = h, u, ""
	if h.opts.Bypass != nil && peer.IsValid() { // the use of a token is logged with the address
		s.addr = netip.AddrPortFrom(peer, 0).String()
	}
	s.takeScratch()
	return s
}

func endCall(s *Session) {
	s.giveScratch()
	s.h, s.user, s.addr, s.out.buf, s.out.resp3 = nil, nil, "", nil, false
	calls.Put(s)
}

// Decide answers commands that ask for decisions, RL.CHECK, RL.RESERVE and RL.ACQUIRE, as a
// connection of the user at peer would that sends them in one pipeline. It waits for the store. A
// user that is nil has not authenticated, and a peer without an address is not valid. Answers are
// appended to answers, in the order of cmds. Decide is safe for concurrent use.
func (h *Handler) Decide(u *users.User, peer netip.Addr, cmds [][][]byte, answers []Answer) []Answer {
	s := h.beginCall(u, peer)
	for _, args := range cmds {
		if len(s.batch.Requests) == maxBatch {
			answers = s.decideInto(answers)
		}
		form, _ := dialectOf(args[0])
		var req limit.Request
		if _, errReply := s.parse(form, args, &req); errReply != "" {
			// As in a pipeline, a malformed one ends the batch before it: the requests behind it
			// see what is left when that is decided.
			answers = append(s.decideInto(answers), Answer{Error: errReply})
			continue
		}
		s.batch.Requests = append(s.batch.Requests, req)
	}
	answers = s.decideInto(answers)
	endCall(s)
	return answers
}

// decideInto decides the batch and appends the answers.
func (s *Session) decideInto(answers []Answer) []Answer {
	if len(s.batch.Requests) > 0 {
		s.useTokens()
		s.h.opts.Limiter.Decide(&s.batch)
		for i := range s.batch.Decisions {
			a := Answer{Decision: s.batch.Decisions[i]}
			if s.batch.Requests[i].Hold != 0 {
				a.Held = heldID(&s.batch, i)
			}
			answers = append(answers, a)
		}
	}
	s.dropChecks()
	return answers
}

// Peek answers RL.PEEK as Decide answers RL.CHECK. It is safe for concurrent use.
func (h *Handler) Peek(u *users.User, args [][]byte) (a Answer) {
	s := h.beginCall(u, netip.Addr{})
	if a.Error = s.permit(h.table["rl.peek"], args); a.Error == "" {
		a.Error = s.peek(args)
	}
	if a.Error == "" {
		a.Decision = s.batch.Decisions[0]
		s.dropChecks()
	}
	endCall(s)
	return a
}

// Call answers any other command, as a connection of the user would that speaks RESP3. The
// command is one that stands for itself: it leaves nothing on its connection. Call is safe for
// concurrent use.
func (h *Handler) Call(ctx context.Context, u *users.User, args [][]byte) (reply []byte) {
	s := h.beginCall(u, netip.Addr{})
	s.out.resp3 = true
	s.run(ctx, args)
	reply = s.out.buf
	endCall(s)
	return reply
}

// Permits returns the text of the error reply to a command that a user may not send, or "". The command
// must exist. A user that is nil has not authenticated. It is safe for concurrent use.
func (h *Handler) Permits(u *users.User, args [][]byte) (errReply string) {
	s := Session{h: h, user: u}
	return s.permit(byFullName(h.table, args[0]), args)
}

// LogIn returns the user of a client at addr that shows a certificate, which may be nil, and
// gives a name and a password unless both are empty. A user that is nil has not authenticated. The
// text is that of the error reply to AUTH, or empty. It is safe for concurrent use.
func (h *Handler) LogIn(ctx context.Context, addr netip.Addr, certificate *x509.Certificate, name, password string) (u *users.User, errReply string) {
	if certificate == nil && name == "" && password == "" { // most requests of a service on its own host
		if h.opts.Users == nil {
			return users.Unrestricted, ""
		}
		return h.opts.Users.Users().Default(), ""
	}
	s := Session{h: h, certificate: certificate}
	if addr.IsValid() {
		s.addr = netip.AddrPortFrom(addr, 0).String()
	}
	s.logOut()
	if name != "" || password != "" {
		errReply = s.logIn(ctx, name, password)
	}
	if s.revoked.Load() { // the users were replaced meanwhile
		return nil, errReply
	}
	return s.user, errReply
}
