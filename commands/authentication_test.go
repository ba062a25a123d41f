package commands_test

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/users"
)

// TestAuthWeight: whatever computes Argon2id does not run in an event loop.
func TestAuthWeight(t *testing.T) {
	set, err := users.Parse([]byte("user any on nopass\nuser ops on $argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, newHandler(t, handlerOptions{users: users.NewAuthenticator(set, nil)}))
	weighs := func(line string, want bool) {
		t.Helper()
		if waits, long := s.Weigh(words(line)[0]); waits != want || long {
			t.Errorf("%s: waits %v, long %v", line, waits, long)
		}
	}
	for line, want := range map[string]bool{
		"AUTH ops x": true, "auth nobody x": true, "AUTH x": true, "AUTH any x": false, "AUTH": false, "AUTH a b c": false,
		"HELLO": false, "HELLO 3": false, "HELLO 3 AUTH any x": false, "HELLO 3 AUTH ops x": true, "HELLO 3 AUTH any x AUTH ops x": true,
		"HELLO 3 SETNAME AUTH AUTH ops x": true, "HELLO 3 SETNAME n AUTH any x": false, "HELLO 3 AUTH ops": false, "PING": false, "RL.EXPLAIN t - -": false,
	} {
		weighs(line, want)
	}
	serveAll(t, s, words("AUTH any x ; MULTI"))
	weighs("EXEC", false)
	serveAll(t, s, words("HELLO 3 AUTH any x AUTH ops x"))
	weighs("EXEC", true)
}

// TestRevoked: a session whose user has changed executes nothing more, also of what it has
// received before.
func TestRevoked(t *testing.T) {
	parse := func(text string) *users.Set {
		set, err := users.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	h := newHandler(t, handlerOptions{users: users.NewAuthenticator(parse("user a on nopass ~* +@all\nuser b on nopass ~* +@all"), nil)})
	kills := map[int64]int{}
	sessions := map[string]*commands.Session{}
	for id, name := range map[int64]string{1: "a", 2: "b"} {
		sessions[name] = h.NewSession(commands.Peer{ID: id, Kill: func() { kills[id]++ }})
		defer sessions[name].Close()
		serveAll(t, sessions[name], words("AUTH "+name+" x ; MULTI ; RL.CHECK t - -"))
	}
	h.ReplaceUsers(parse("user b on nopass ~* +@all\nuser a on nopass ~t +@all"))
	for name, want := range map[string]string{"a": "-NOAUTH", "b": "*1\r\n*7\r\n"} {
		for _, line := range []string{"EXEC", "MULTI ; RL.CHECK t - - ; EXEC"} {
			cmds := words(line)
			reply, _ := serveAll(t, sessions[name], cmds)
			if got := string(reply); !strings.Contains(got, want) || name == "a" && strings.Contains(got, "*") {
				t.Errorf("%s: %s: %q", name, line, got)
			}
		}
	}
	if reply, begun, _ := sessions["a"].Start(clock, words("RL.CHECK t - -"), nil, nil, 0); begun {
		t.Errorf("a check of a revoked session is begun: %q", reply)
	}
	if kills[1] != 1 || kills[2] != 0 {
		t.Errorf("kills %v", kills)
	}
}
