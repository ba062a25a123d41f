package commands_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/users"
)

// fixedTokens accepts one token until a time.
type fixedTokens struct{ until time.Time }

func (f fixedTokens) Verify(token string) (tenant string, until time.Time, err error) {
	if token != "token" {
		return "", until, errors.New("token is malformed")
	}
	return "acme", f.until, nil
}

// TestTokens: a token binds a connection to its tenant until it ends, and another one makes
// it go on. A reload of users does not concern it.
func TestTokens(t *testing.T) {
	set, err := users.Parse([]byte("user other on nopass ~other +@check"))
	if err != nil {
		t.Fatal(err)
	}
	now := clock
	tokens := &fixedTokens{clock.Add(time.Minute)}
	h := newHandler(t, handlerOptions{users: users.NewAuthenticator(set, tokens), now: func() time.Time { return now }})
	killed := false
	s := h.NewSession(commands.Peer{ID: 1, Kill: func() { killed = true }})
	defer s.Close()
	expect := func(line, want string) {
		t.Helper()
		reply, _ := serveAll(t, s, words(line))
		if got := string(reply); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.100q, want %s", line, got, want)
		}
	}
	expect("AUTH a.b.c", "-WRONGPASS invalid username-password pair or user is disabled. A token is sent as AUTH jwt TOKEN.\r\n")
	expect("AUTH jwt wrong", "-WRONGPASS the token is refused: token is malformed\r\n")
	expect("RL.CHECK - - -", "-NOAUTH")
	expect("AUTH jwt token", "+OK\r\n")
	expect("ACL WHOAMI", "$3\r\njwt\r\n")
	for _, line := range []string{"RL.CHECK - - -", "RL.CHECK acme - -", "RL.PEEK - - -", "RL.EXPLAIN acme - -", "RL.LIMITS -"} {
		expect(line, "*")
	}
	for _, line := range []string{"RL.CHECK other - -", "RL.EXPLAIN other - -", "RL.RESET acme", "RL.LIMITS", "CL.THROTTLE acme 1 1 1", "CLIENT LIST", "RL.RELEASE a;other;x"} {
		expect(line, "-NOPERM")
	}
	expect("RL.CHECK other - -", "-NOPERM this user may not check tenant 'other': its token is for tenant 'acme'\r\n")
	h.ReplaceUsers(set)
	if killed {
		t.Error("a reload of users closes the connection of a token")
	}
	now = clock.Add(time.Minute - time.Millisecond)
	expect("RL.CHECK - - -", "*")
	now = clock.Add(time.Minute)
	expect("RL.CHECK - - - ; RL.CHECK - - -", "-NOAUTH Authentication required.\r\n-NOAUTH")
	expect("PING", "-NOAUTH")
	tokens.until = clock.Add(time.Hour)
	expect("HELLO 2 AUTH jwt token", "*")
	expect("RL.CHECK - - - ; MULTI ; RL.CHECK - - - ; EXEC", "*")
	expect("MULTI ; RL.CHECK - - -", "+OK\r\n+QUEUED\r\n")
	now = clock.Add(2 * time.Hour)
	expect("EXEC ; RL.CHECK - - -", "-NOAUTH Authentication required.\r\n-NOAUTH")
	expect("AUTH other x", "+OK")
	expect("DISCARD", "-ERR DISCARD without MULTI")
	now = clock.Add(3 * time.Hour)
	expect("RL.CHECK - - -", "*")
}

// TestTokenEndsBesideDefaultUser: a connection whose token has ended gets the rights of no
// other user until it asks for them.
func TestTokenEndsBesideDefaultUser(t *testing.T) {
	set, err := users.Parse([]byte("user default on nopass ~* +@all"))
	if err != nil {
		t.Fatal(err)
	}
	now := clock
	s := newSession(t, newHandler(t, handlerOptions{users: users.NewAuthenticator(set, fixedTokens{clock.Add(time.Minute)}), now: func() time.Time { return now }}))
	for _, step := range []struct {
		after      time.Duration
		line, want string
	}{
		{0, "RL.CHECK other - -", "*"},
		{0, "AUTH jwt token ; RL.CHECK other - -", "+OK\r\n-NOPERM"},
		{time.Minute, "CLIENT REPLY OFF ; RL.CHECK - - -", ""},
		{0, "CLIENT REPLY ON", "-NOAUTH"},
		{0, "RL.CHECK other - -", "-NOAUTH"},
		{0, "RESET ; RL.CHECK other - -", "+RESET\r\n*"},
	} {
		now = now.Add(step.after)
		reply, _ := serveAll(t, s, words(step.line))
		if got := string(reply); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: %.100q, want %s", step.line, got, step.want)
		}
	}
}

// TestTokenEndsInPipeline: a token that ends between the commands of one pipeline is of no
// use for the rest, in the form that does not wait too.
func TestTokenEndsInPipeline(t *testing.T) {
	set, err := users.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	reads, end := 0, 1<<30
	h := newHandler(t, handlerOptions{users: users.NewAuthenticator(set, fixedTokens{clock.Add(time.Minute)}), now: func() time.Time {
		if reads++; reads > end {
			return clock.Add(time.Minute)
		}
		return clock
	}})
	s := h.NewSession(commands.Peer{ID: 1})
	defer s.Close()
	if reply, _ := serveAll(t, s, words("AUTH jwt token")); string(reply) != "+OK\r\n" {
		t.Fatalf("%q", reply)
	}
	cmds := words("RL.CHECK - - - ; RL.CHECK - - -")
	end = reads + 1
	if _, begun, _ := s.Start(clock, cmds, nil, nil, 0); begun {
		t.Error("a pipeline with a command that is refused is begun")
	}
	reply, served, _ := s.Serve(t.Context(), cmds, nil)
	if got := string(reply); served != 2 || got != strings.Repeat("-NOAUTH Authentication required.\r\n", 2) {
		t.Errorf("%d, %q", served, got)
	}
}
