package commands_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/users"
)

var isolationCommands = flag.Int("isolation-commands", 100_000, "random commands of each user in TestIsolation")

// tenants are the users of the isolation test: each may do everything, for its own tenant.
var tenants = []string{"alpha", "beta"}

// isolationUsers returns the users of tenants, whose passwords are their names.
func isolationUsers(t *testing.T) *users.Authenticator {
	t.Helper()
	set, err := users.Parse([]byte("user alpha on #8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8 ~alpha ~alpha:* +@all\n" +
		"user beta on #f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753 ~beta ~beta:* +@all"))
	if err != nil {
		t.Fatal(err)
	}
	return users.NewAuthenticator(set, nil)
}

// uncomparable are the commands whose replies depend on the process as a whole.
var uncomparable = []string{"info", "memory"}

// comparablePart returns the part of a reply that must not depend on other users.
func comparablePart(name string, reply []byte) []byte {
	switch {
	case slices.Contains(uncomparable, name):
		return nil
	case name == "rl.reset" && reply[0] == ':':
		// The number counts buckets that are full again, until the store sweeps them away.
		return reply[:1]
	}
	return reply
}

// randomCommand returns a command of a user: any command of the table, with words that fit
// it, and the names, keys and ids of both tenants.
func randomCommand(r *rand.Rand, user int, names []string) []string {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	tenant := pick("alpha", "beta", "-", "{alpha}", "{beta}", "alpha}b", "beta\x00", "alphA", "αlpha", "")
	if r.IntN(2) == 0 {
		tenant = tenants[user]
	}
	id := fmt.Sprint("id", r.IntN(20))
	ip := fmt.Sprintf("10.%d.0.%d", user, r.IntN(5)) // a limit by address is of all tenants
	subject := []string{tenant, pick("-", "GET /", "POST /pay"), pick("-", ip)}
	key := pick("alpha:", "beta:", "alpha", "gamma:") + fmt.Sprint(r.IntN(3))
	held := [][]string{{"ID", id, "TENANT", tenant}, {pick("a", "r", "n") + ";" + tenant + ";" + id}}[r.IntN(2)]
	name := pick(names...)
	switch name {
	case "rl.check", "rl.peek", "rl.explain", "rl.refund":
		return append(append([]string{name}, subject...), pick("1", "2", "5", "1000", "x"), "DIM", "user", pick("u1", "u2"))
	case "rl.reserve":
		return append(append([]string{name}, subject...), pick("1", "3"), "ID", id)
	case "rl.acquire":
		return append(append([]string{name}, subject...), "ID", id)
	case "rl.commit":
		return append(append([]string{name}, held...), pick("0", "1", "9"))
	case "rl.cancel", "rl.renew", "rl.release":
		return append([]string{name}, held...)
	case "rl.reset":
		return [][]string{{name, tenant}, {name, tenant, pick("tenant", "payments", "ip")}, {name, "-", "ip"}}[r.IntN(3)]
	case "rl.limits":
		return [][]string{{name}, {name, tenant}}[r.IntN(2)]
	case "rl.config":
		return []string{name, pick("VERSION", "RELOAD", "PROMOTE", "ABORT", "SHARDS")}
	case "cl.throttle", "gcra", "throttle":
		return []string{name, key, "3", "5", "60"}
	case "del", "unlink":
		return []string{name, key, pick("alpha:1", "beta:1")}
	case "auth":
		return []string{name, tenants[user], tenants[user]} // wrong passwords are limited by real time
	case "client":
		return strings.Fields(pick("client list", "client kill id 1", "client kill id 2", "client kill user alpha skipme no", "client setname x", "client info", "client id", "client no-evict on"))
	case "acl":
		return strings.Fields(pick("acl list", "acl users", "acl getuser alpha", "acl whoami", "acl load", "acl dryrun alpha ping", "acl cat"))
	case "config":
		return strings.Fields(pick("config get *", "config set maxclients 1"))
	case "quit", "reply":
		return []string{"ping"}
	}
	return []string{name, pick(tenant, key, "1", "x")}
}

// isolated sends n random commands of alpha, between those of beta unless it is alone, and
// returns the replies to alpha.
func isolated(t *testing.T, n int, seed uint64, alone bool) (replies []byte) {
	t.Helper()
	now := clock
	h := newHandler(t, handlerOptions{users: isolationUsers(t), now: func() time.Time { return now }})
	var sessions []*commands.Session
	for i := range tenants {
		s := h.NewSession(commands.Peer{ID: int64(i + 1)})
		defer s.Close()
		sessions = append(sessions, s)
	}
	names := commandNames(t)
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
		for user := range tenants {
			if user == 1 && alone {
				continue
			}
			if i%50 == 0 { // RESET, MULTI and CLIENT REPLY may have come
				serve(user, "DISCARD")
				serve(user, "AUTH", tenants[user], tenants[user])
				serve(user, "CLIENT", "REPLY", "ON")
			}
			words := randomCommand(random[user], user, names)
			reply := serve(user, words...)
			if user == 0 {
				replies = fmt.Appendf(replies, "%d %q: ", i, words)
				replies = append(replies, comparablePart(words[0], reply)...)
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
