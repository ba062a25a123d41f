package commands

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"github.com/limitgate/limitgate/internal/users"
)

// The replies to clients that have not authenticated, or cannot, as in Redis.
const (
	notAuthenticated = "NOAUTH Authentication required."
	helloNeedsAuth   = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	wrongPassword    = "WRONGPASS invalid username-password pair or user is disabled."
	noPassword       = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	noUsers          = " This limitgate has no users: serve reads them from the file of --users."
	tooManyFailures  = "ERR too many failed attempts to authenticate from this address: try again in a minute"
	tooManyAttempts  = "ERR too many clients authenticate at once: try again"
)

// logOut sets the user of a connection that has not authenticated: that of its certificate,
// the default user if it needs no password, or none.
func (s *Session) logOut() {
	if s.h.opts.Users == nil {
		s.setUser(users.Unrestricted)
		return
	}
	set := s.h.opts.Users.Users()
	u := set.Default()
	if s.certificate != nil {
		if of := set.ByCertificate(s.certificate); of != nil {
			u = of
		}
	}
	s.setUser(u)
}

// setUser sets the user, and ends the session if the users were replaced meanwhile and it
// may not go on.
func (s *Session) setUser(u *users.User) {
	s.mu.Lock()
	s.user = u
	s.mu.Unlock()
	if s.setAuthenticated != nil {
		s.setAuthenticated(u != nil)
	}
	if s.h.opts.Users != nil && u != nil && !s.h.opts.Users.Users().Keeps(u) {
		s.revoke()
	}
}

// revoke takes the rights from a session, also for commands that it has received, and closes
// its connection.
func (s *Session) revoke() {
	s.revoked.Store(true)
	if s.kill != nil {
		s.kill()
	}
}

// ReplaceUsers replaces the users, and closes the connections of those that have changed. It
// is safe for concurrent use, and needs Options.Users.
func (h *Handler) ReplaceUsers(set *users.Set) {
	h.opts.Users.Replace(set)
	for _, s := range h.open() {
		s.mu.Lock()
		u := s.user
		s.mu.Unlock()
		if u != nil && !set.Keeps(u) {
			s.revoke()
		}
	}
}

// authCommand serves AUTH [username] password.
func authCommand(ctx context.Context, s *Session, args [][]byte) {
	if len(args) > 3 {
		s.out.error(syntaxError)
		return
	}
	name, password := credentials(args)
	if len(args) == 2 && s.needsNoPassword() {
		s.out.error(s.withoutUsers(noPassword))
		return
	}
	if errReply := s.logIn(ctx, name, password); errReply != "" {
		s.out.error(errReply + s.orToken(name, password, errReply))
		return
	}
	s.out.ok()
}

// orToken adds advice to the error for a token that is sent as a password of another user.
func (s *Session) orToken(name, password, errReply string) string {
	if errReply != wrongPassword || name == users.TokenName || s.h.opts.Users == nil || !s.h.opts.Users.TakesTokens() || strings.Count(password, ".") != 2 {
		return ""
	}
	return " A token is sent as AUTH " + users.TokenName + " TOKEN."
}

// credentials returns the words of AUTH. One word is the password of the default user.
func credentials(args [][]byte) (name, password string) {
	if len(args) == 2 {
		return users.DefaultName, string(args[1])
	}
	return string(args[1]), string(args[2])
}

// needsNoPassword reports whether the default user needs no password.
func (s *Session) needsNoPassword() bool {
	return s.h.opts.Users == nil || s.h.opts.Users.Users().Default() != nil
}

// withoutUsers adds to an error that there are no users, if that is so.
func (s *Session) withoutUsers(errReply string) string {
	if s.h.opts.Users == nil {
		errReply += noUsers
	}
	return errReply
}

// logIn sets the user, or returns an error reply. An attempt that fails changes nothing.
func (s *Session) logIn(ctx context.Context, name, password string) (errReply string) {
	if s.h.opts.Users == nil {
		if name != users.DefaultName {
			return s.withoutUsers(wrongPassword)
		}
		return ""
	}
	addr, _ := netip.ParseAddrPort(s.addr)
	u, err := s.h.opts.Users.Authenticate(ctx, addr.Addr(), name, password)
	switch {
	case err == nil:
		s.setUser(u)
		return ""
	case errors.Is(err, users.ErrWrong):
		return wrongPassword
	case errors.Is(err, users.ErrToken):
		return "WRONGPASS " + err.Error()
	case errors.Is(err, users.ErrTooOften):
		s.quit = true
		return tooManyFailures
	default:
		return tooManyAttempts
	}
}

// authWeight returns the weight of AUTH and HELLO: a password may take long to check.
func (s *Session) authWeight(args [][]byte) weight {
	if s.h.opts.Users == nil {
		return light
	}
	if isName(args[0], "hello") {
		_, auth, _ := helloOptions(args[min(2, len(args)):])
		if auth == nil {
			return light
		}
		args = append([][]byte{args[0]}, auth...)
	}
	if len(args) != 2 && len(args) != 3 {
		return light
	}
	if name, password := credentials(args); s.h.opts.Users.MayWait(name, password) {
		return waits
	}
	return light
}
