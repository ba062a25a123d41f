package commands_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/isolation"
	"github.com/limitgate/limitgate/internal/users"
)

var isolationCommands = flag.Int("isolation-commands", 100_000, "random commands of each user in TestIsolation")

// isolationUsers returns the users of the isolation test.
func isolationUsers(t *testing.T) *users.Authenticator {
	t.Helper()
	set, err := users.Parse([]byte(isolation.Users))
	if err != nil {
		t.Fatal(err)
	}
	return users.NewAuthenticator(set, nil)
}

// isolated sends n random commands of alpha, between those of beta unless it is alone, and
// returns the replies to alpha.
func isolated(t *testing.T, n int, seed uint64, alone bool) (replies []byte) {
	t.Helper()
	now := clock
	h := newHandler(t, handlerOptions{users: isolationUsers(t), now: func() time.Time { return now }})
	var sessions []*commands.Session
	for i := range isolation.Tenants {
		s := h.NewSession(commands.Peer{ID: int64(i + 1)})
		defer s.Close()
		sessions = append(sessions, s)
	}
	generator := isolation.Generator{Names: commandNames(t), Period: "60"}
	serve := func(user int, words ...string) []byte {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		cmds := [][][]byte{args}
		done := make(chan struct{}, 1)
		switch reply, begun, decided := sessions[user].Start(now, cmds, nil, func(uint64) { done <- struct{}{} }, 0); {
		case decided:
			return reply
		case begun:
			<-done
			if reply, ok := sessions[user].Finish(); ok {
				return reply
			}
			return sessions[user].FinishBlocking()
		}
		reply, _, quit := sessions[user].Serve(t.Context(), cmds, nil)
		if quit {
			t.Fatalf("%q ended the connection", words)
		}
		return reply
	}
	random := []*rand.Rand{rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))}
	for i := range n {
		now = now.Add(10 * time.Millisecond)
		for user := range isolation.Tenants {
			if user == 1 && alone {
				continue
			}
			if i%50 == 0 { // RESET, MULTI and CLIENT REPLY may have come
				serve(user, "DISCARD")
				serve(user, "AUTH", isolation.Tenants[user], isolation.Tenants[user])
				serve(user, "CLIENT", "REPLY", "ON")
			}
			words := generator.Command(random[user], user)
			reply := serve(user, words...)
			if user == 0 {
				replies = fmt.Appendf(replies, "%d %q: ", i, words)
				replies = append(replies, isolation.Comparable(words[0], reply)...)
				replies = append(replies, '\n')
			}
		}
	}
	return replies
}

// commandNames returns the names of all commands.
func commandNames(t *testing.T) (names []string) {
	t.Helper()
	s := newSession(t, newHandler(t, handlerOptions{}))
	reply, _, _ := s.Serve(t.Context(), words("COMMAND LIST"), nil)
	for line := range strings.SplitSeq(string(reply), "\r\n") {
		if line != "" && line[0] != '*' && line[0] != '$' && !strings.Contains(line, "|") {
			names = append(names, line)
		}
	}
	if len(names) < 40 {
		t.Fatalf("%d commands", len(names))
	}
	return names
}

// TestIsolation checks that nothing that a user sends has an influence on the replies to a user
// of another tenant: both send random commands of all kinds, and one of them again alone.
func TestIsolation(t *testing.T) {
	const seed = 1
	with, alone := isolated(t, *isolationCommands, seed, false), isolated(t, *isolationCommands, seed, true)
	if bytes.Equal(with, alone) {
		return
	}
	a, b := strings.Split(string(with), "\n"), strings.Split(string(alone), "\n")
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("beside the other user:\n%s\nalone:\n%s", a[i], b[i])
		}
	}
}
