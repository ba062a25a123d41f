package commands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// describe returns the session's line in CLIENT LIST.
func (s *Session) describe() string {
	now := s.h.opts.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d idle=%d flags=N db=0 cmd=%s user=%s lib-name=%s lib-ver=%s resp=%d",
		s.id, s.addr, s.local, s.name, int64(now.Sub(s.created).Seconds()), int64(now.Sub(s.lastAt).Seconds()),
		strings.ToLower(s.last), defaultUser, s.libName, s.libVer, protocol(s.resp3))
}

// list returns one line for each open connection, by id.
func (h *Handler) list() string {
	var b strings.Builder
	for _, s := range h.open() {
		b.WriteString(s.describe())
		b.WriteByte('\n')
	}
	return b.String()
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

// clientKill answers CLIENT KILL addr (OK or an error) and CLIENT KILL
// [ID id | ADDR addr | SKIPME yes|no] ... (how many were killed).
func (s *Session) clientKill(args [][]byte) {
	if len(args) == 1 {
		for _, other := range s.h.open() {
			if other.addr == string(args[0]) {
				s.end(other)
				s.out.ok()
				return
			}
		}
		s.out.error("ERR No such client")
		return
	}
	match, complaint := killFilter(args)
	if complaint != "" {
		s.out.error(complaint)
		return
	}
	n := int64(0)
	for _, other := range s.h.open() {
		if match(s, other) {
			s.end(other)
			n++
		}
	}
	s.out.integer(n)
}

// killFilter reads the filters of CLIENT KILL; all must hold.
func killFilter(args [][]byte) (match func(self, other *Session) bool, complaint string) {
	if len(args)%2 != 0 {
		return nil, "ERR syntax error"
	}
	id, addr, skipMe := int64(0), "", true
	for i := 0; i < len(args); i += 2 {
		value := string(args[i+1])
		switch {
		case equalFold(args[i], "ID"):
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 1 {
				return nil, "ERR client-id should be greater than 0"
			}
			id = n
		case equalFold(args[i], "ADDR"):
			addr = value
		case equalFold(args[i], "SKIPME") && (strings.EqualFold(value, "yes") || strings.EqualFold(value, "no")):
			skipMe = strings.EqualFold(value, "yes")
		default:
			return nil, "ERR syntax error"
		}
	}
	return func(self, other *Session) bool {
		return (id == 0 || other.id == id) && (addr == "" || other.addr == addr) && !(skipMe && other == self)
	}, ""
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
