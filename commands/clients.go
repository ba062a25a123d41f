package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/internal/users"
)

// describe appends the session's line in CLIENT LIST.
func (s *Session) describe(to []byte) []byte {
	now := s.h.opts.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Appendf(to, "id=%d addr=%s laddr=%s name=%s age=%d idle=%d flags=N db=0 cmd=%s user=%s lib-name=%s lib-ver=%s resp=%d\n",
		s.id, s.addr, s.local, s.name, int64(now.Sub(s.created).Seconds()), int64(now.Sub(s.lastAt).Seconds()),
		strings.ToLower(s.last), s.userName(), s.libName, s.libVer, protocol(s.resp3))
}

// lockedUserName returns userName for other sessions.
func (s *Session) lockedUserName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.userName()
}

// userName returns the name of the session's user. The caller holds mu, or is the session.
func (s *Session) userName() string {
	if s.user == nil {
		return users.DefaultName
	}
	return s.user.Name
}

func (h *Handler) open() []*Session {
	h.mu.Lock()
	out := make([]*Session, 0, len(h.sessions))
	for _, s := range h.sessions {
		out = append(out, s)
	}
	h.mu.Unlock()
	slices.SortFunc(out, func(a, b *Session) int { return int(a.id - b.id) })
	return out
}

// count returns the number of open connections.
func (h *Handler) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// has reports whether a connection is open.
func (h *Handler) has(id int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id] != nil
}

// clientList serves CLIENT LIST [TYPE type] [ID id...]: a line for each connection, by
// id.
func clientList(_ context.Context, s *Session, args [][]byte) {
	wanted := map[int64]bool(nil)
	none := false
	switch rest := args[2:]; {
	case len(rest) == 0:
	case len(rest) == 2 && equalFold(rest[0], "TYPE"):
		kind, ok := clientType(rest[1])
		if !ok {
			s.out.error("ERR Unknown client type '" + quote(rest[1]) + "'")
			return
		}
		none = kind != typeNormal
	case len(rest) > 1 && equalFold(rest[0], "ID"):
		wanted = map[int64]bool{}
		for _, arg := range rest[1:] {
			id, ok := parseInteger(arg)
			if !ok {
				s.out.error("ERR Invalid client ID")
				return
			}
			wanted[id] = true
		}
	default:
		s.out.error(syntaxError)
		return
	}
	begin := len(s.out.buf)
	for _, other := range s.h.open() {
		if !none && (wanted == nil || wanted[other.id]) {
			s.out.buf = other.describe(s.out.buf)
		}
	}
	s.out.frame(begin)
}

// typeNormal is the type of all clients.
const typeNormal = "normal"

func clientType(arg []byte) (kind string, ok bool) {
	for _, known := range []string{typeNormal, "replica", "slave", "pubsub", "master"} {
		if equalFold(arg, known) {
			return known, true
		}
	}
	return "", false
}

// clientKill serves CLIENT KILL addr (OK or an error) and CLIENT KILL with filters (the
// number of connections killed).
func clientKill(_ context.Context, s *Session, args [][]byte) {
	rest := args[2:]
	if len(rest) == 1 {
		s.killAddr(string(rest[0]))
		return
	}
	f, errReply := s.readKillFilter(rest)
	if errReply != "" {
		s.out.error(errReply)
		return
	}
	n := int64(0)
	for _, other := range s.h.open() {
		if f.match(s, other) {
			s.end(other)
			n++
		}
	}
	s.out.integer(n)
}

func (s *Session) killAddr(addr string) {
	for _, other := range s.h.open() {
		if other.addr == addr {
			s.end(other)
			s.out.ok()
			return
		}
	}
	s.out.error("ERR No such client")
}

// killFilter selects the connections that CLIENT KILL closes: all set fields must match.
type killFilter struct {
	id          int64
	addr, laddr string
	kind        string
	user        string
	keepSelf    bool
}

func (f *killFilter) match(self, other *Session) bool {
	return (f.id == 0 || other.id == f.id) && (f.addr == "" || other.addr == f.addr) &&
		(f.laddr == "" || other.local == f.laddr) && (f.kind == "" || f.kind == typeNormal) && (f.user == "" || f.user == other.lockedUserName()) && (!f.keepSelf || other != self)
}

func (s *Session) readKillFilter(args [][]byte) (f killFilter, errReply string) {
	f.keepSelf = true
	for ; len(args) > 1; args = args[2:] {
		value := args[1]
		var ok bool
		switch {
		case equalFold(args[0], "ID"):
			if f.id, ok = parseInteger(value); !ok || f.id < 1 {
				return f, "ERR client-id should be greater than 0"
			}
		case equalFold(args[0], "TYPE"):
			if f.kind, ok = clientType(value); !ok {
				return f, "ERR Unknown client type '" + quote(value) + "'"
			}
		case equalFold(args[0], "ADDR"):
			f.addr = string(value)
		case equalFold(args[0], "LADDR"):
			f.laddr = string(value)
		case equalFold(args[0], "USER"):
			if f.user = string(value); f.user != users.DefaultName && f.user != users.TokenName && s.userNamed(f.user) == nil {
				return f, "ERR No such user '" + quote(value) + "'"
			}
		case equalFold(args[0], "SKIPME") && (equalFold(value, "yes") || equalFold(value, "no")):
			f.keepSelf = equalFold(value, "yes")
		default:
			return f, syntaxError
		}
	}
	if len(args) > 0 {
		return f, syntaxError
	}
	return f, ""
}

// end closes another connection at once, and this one after its reply.
func (s *Session) end(other *Session) {
	if other == s {
		s.quit = true
		return
	}
	if other.kill != nil {
		other.kill()
	}
}
