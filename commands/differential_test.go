package commands_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// deliberate are the replies of another type than those of Redis.
var deliberate = []struct {
	pattern, reason string
}{
	{`^CLIENT SETNAME .{257}`, "what a client may call itself is bounded"},
	{`^HELLO .*SETNAME .{257}`, "what a client may call itself is bounded"},
	{`\x00`, "Redis reads the words of options up to a zero byte, and we do not"},
	{`^CLIENT TRACKING .*PREFIX .*PREFIX `, "prefixes are not kept, so they cannot overlap"},
}

func isDeliberate(cmd [][]byte) bool {
	line := strings.ToUpper(string(bytes.Join(cmd, []byte(" "))))
	for _, d := range deliberate {
		if regexp.MustCompile(`(?s)` + d.pattern).MatchString(line) {
			return true
		}
	}
	return false
}

// wordedAlike matches the errors that are identical to Redis'.
var wordedAlike = regexp.MustCompile(`^ERR (unknown command|unknown subcommand|wrong number of arguments)`)

// compare describes how the type of our reply differs from theirs.
func compare(cmd [][]byte, ours, theirs answer) string {
	switch {
	case ours.kind != theirs.kind || ours.null != theirs.null:
		return "another type"
	case ours.kind != '-':
		return ""
	case wordedAlike.MatchString(theirs.text) && plain(cmd) && ours.text != theirs.text:
		return "another text"
	}
	word := func(a answer) string { w, _, _ := strings.Cut(a.text, " "); return w }
	if word(ours) != word(theirs) {
		return "another error"
	}
	return ""
}

// plain reports whether an error may repeat the words of a command unchanged: Limitgate
// escapes unprintable bytes, and repeats at most 64 bytes of a word.
func plain(cmd [][]byte) bool {
	for _, w := range cmd {
		if len(w) > 64 || bytes.ContainsFunc(w, func(c rune) bool { return c < 0x20 || c > 0x7e }) {
			return false
		}
	}
	return true
}

// check compares the replies to commands on one connection.
func (r *reference) check(tb testing.TB, cmds ...[][]byte) {
	tb.Helper()
	for _, protocol := range []int{2, 3} {
		theirs := r.ask(tb, r.node(cmds[0]), protocol, cmds)
		ours := r.serve(tb, protocol, cmds)
		for i, cmd := range cmds {
			if problem := compare(cmd, ours[i], theirs[i]); problem != "" && !isDeliberate(cmd) {
				tb.Errorf("RESP%d: %s for %.300q:\n  ours   %v\n  theirs %v", protocol, problem, cmd, ours[i], theirs[i])
			}
		}
	}
}

// oddWords are appended to every command, in every number from 0 to 4.
var oddWords = []string{
	"x", "", "0", "-1", "007", "+1", "1.5", "16384", "9223372036854775807", "99999999999999999999", "ON", "yes", "default",
	"\xff\x00\r\n'\"", "*", "[", strings.Repeat("long ", 20),
}

// TestAgainstRedis compares the standard commands with a real server.
func TestAgainstRedis(t *testing.T) {
	r := newReference(t)
	t.Run("odd words", func(t *testing.T) { testOddWords(t, r) })
	t.Run("conversations", func(t *testing.T) { testConversations(t, r) })
	t.Run("parts", func(t *testing.T) { testParts(t, r) })
	t.Run("info", func(t *testing.T) { testInfo(t, r) })
	t.Run("data", func(t *testing.T) { testData(t, r) })
}

// testOddWords: whatever words follow a command of Limitgate, the reply has the type of
// Redis' reply.
func testOddWords(t *testing.T, r *reference) {
	sent := 0
	for full := range r.ours {
		if !r.theirs[full] {
			continue
		}
		for _, word := range oddWords {
			for n := range 5 {
				var cmd [][]byte
				for i, w := range strings.Split(full, "|") {
					if n%2 == i {
						w = strings.ToUpper(w)
					}
					cmd = append(cmd, []byte(w))
				}
				for range n {
					cmd = append(cmd, []byte(word))
				}
				if r.askable(cmd) {
					sent++
					r.check(t, cmd)
				}
				if word == "x" && n > 0 { // and after a word that is not one of its subcommands
					r.checkUnknown(t, cmd[0], n)
				}
			}
		}
	}
	if sent < 3000 {
		t.Errorf("only %d commands were compared", sent)
	}
}

// checkUnknown compares the errors for an unknown subcommand and an unknown command.
func (r *reference) checkUnknown(t *testing.T, name []byte, n int) {
	t.Helper()
	cmd := [][]byte{name, []byte("nope")}
	for i := range n {
		cmd = append(cmd, fmt.Append(nil, "arg", i))
	}
	r.check(t, cmd)
	cmd[0] = append([]byte("no"), name...)
	r.check(t, cmd)
}

// conversations are commands as clients send them, and the mistakes that testOddWords
// does not cover.
var conversations = []string{
	`PING ; PING "" ; ECHO "" ; TIME ; ROLE ; DBSIZE ; QUIT`,
	`HELLO ; HELLO 3 ; HELLO 2 SETNAME me ; CLIENT GETNAME ; HELLO 4 ; HELLO 3 SETNAME ; HELLO 3 SETNAME "a b" ; HELLO 3 AUTH default ; HELLO 3 AUTH nobody x ; HELLO 3 AUTH default x SETNAME n ; RESET ; CLIENT GETNAME`,
	`AUTH x ; AUTH default x ; AUTH nobody x ; AUTH a b c ; SELECT 0 ; SELECT 1 ; SELECT -1`,
	`CLIENT SETNAME "" ; CLIENT SETNAME a=b ; CLIENT SETNAME "a b" ; CLIENT GETNAME`,
	`CLIENT ID ; CLIENT INFO ; CLIENT LIST ; CLIENT LIST TYPE normal ; CLIENT LIST TYPE replica ; CLIENT LIST TYPE x ; CLIENT LIST ID 1 2 ; CLIENT LIST ID x ; CLIENT LIST ID ; CLIENT LIST TYPE`,
	`CLIENT KILL 10.0.0.1:1 ; CLIENT KILL ID 0 ; CLIENT KILL ID x ; CLIENT KILL TYPE x ; CLIENT KILL TYPE master ; CLIENT KILL USER x ; CLIENT KILL ADDR 10.0.0.1:1 LADDR 10.0.0.1:2 ; CLIENT KILL SKIPME x ; CLIENT KILL ID 999999 SKIPME yes ; CLIENT KILL ID 1 SKIPME`,
	`CLIENT TRACKING ON ; CLIENT TRACKING ON BCAST ; CLIENT TRACKINGINFO ; CLIENT GETREDIR ; CLIENT TRACKING OFF ; CLIENT TRACKING ON BCAST PREFIX a ; CLIENT TRACKING OFF ; CLIENT TRACKING ON PREFIX a`,
	`CLIENT TRACKING ON OPTIN OPTOUT ; CLIENT TRACKING ON BCAST OPTIN ; CLIENT TRACKING ON OPTIN ; CLIENT CACHING YES ; CLIENT CACHING NO ; CLIENT CACHING x ; CLIENT TRACKINGINFO ; CLIENT TRACKING ON OPTOUT ; CLIENT TRACKING x OPTOUT`,
	`CLIENT TRACKING ON REDIRECT 999999 ; CLIENT TRACKING ON REDIRECT x ; CLIENT TRACKING ON REDIRECT ; CLIENT TRACKING ON NOLOOP ; CLIENT TRACKING OFF x ; CLIENT TRACKING maybe`,
	`CLIENT NO-EVICT on ; CLIENT NO-EVICT x ; CLIENT UNPAUSE ; CLIENT UNBLOCK 1 ; CLIENT UNBLOCK 1 TIMEOUT ; CLIENT UNBLOCK 1 x ; CLIENT UNBLOCK x ERROR ; CLIENT UNBLOCK 1 ERROR x ; CLIENT REPLY ON ; CLIENT REPLY x`,
	`COMMAND ; COMMAND COUNT ; COMMAND LIST ; COMMAND LIST FILTERBY ; COMMAND LIST FILTERBY ACLCAT read ; COMMAND LIST FILTERBY ACLCAT x ; COMMAND LIST FILTERBY MODULE x ; COMMAND LIST FILTERBY PATTERN c* ; COMMAND LIST FILTERBY x x ; COMMAND LIST x`,
	`COMMAND INFO ; COMMAND INFO x ; COMMAND INFO ping x client|id ; COMMAND DOCS x ; COMMAND DOCS ping client client|id ; COMMAND GETKEYS WATCH a b ; COMMAND GETKEYSANDFLAGS WATCH a b ; COMMAND GETKEYS PING x ; COMMAND GETKEYS nope x ; COMMAND GETKEYS CLIENT x ; COMMAND GETKEYS MEMORY USAGE k ; COMMAND GETKEYS PING`,
	`INFO ; INFO server ; INFO all ; INFO x ; INFO server x ; CONFIG GET save ; CONFIG GET x y ; CONFIG GET * ; CONFIG SET x 1 ; CONFIG SET databases 3 ; CONFIG SET x ; CONFIG SET databases 3 x ; CONFIG REWRITE`,
	`ACL WHOAMI ; ACL LIST ; ACL USERS ; ACL CAT ; ACL CAT read ; ACL CAT x ; ACL CAT read x ; ACL GETUSER default ; ACL GETUSER x ; MEMORY USAGE k ; MEMORY USAGE k SAMPLES 5 ; MEMORY USAGE k SAMPLES x ; MEMORY USAGE k SAMPLES -1 ; MEMORY USAGE k SAMPLES ; MEMORY DOCTOR ; MEMORY STATS ; MEMORY PURGE`,
	`LATENCY LATEST ; LATENCY HISTORY x ; LATENCY GRAPH x ; LATENCY RESET ; LATENCY RESET x y ; LATENCY HISTOGRAM ; LATENCY DOCTOR ; SLOWLOG GET ; SLOWLOG GET 1 ; SLOWLOG GET x ; SLOWLOG GET -2 ; SLOWLOG GET 1 2 ; SLOWLOG LEN ; SLOWLOG RESET`,
	`CLUSTER INFO ; CLUSTER SLOTS ; CLUSTER SHARDS ; CLUSTER NODES ; CLUSTER MYID ; CLUSTER KEYSLOT k ; CLUSTER COUNTKEYSINSLOT 0 ; CLUSTER COUNTKEYSINSLOT 16384 ; CLUSTER GETKEYSINSLOT 0 1 ; CLUSTER GETKEYSINSLOT 0 -1 ; CLUSTER GETKEYSINSLOT x 1 ; CLUSTER LINKS ; CLUSTER REPLICAS x ; CLUSTER SLAVES x`,
	`READONLY ; READWRITE ; ASKING`,
	`MULTI ; PING ; MULTI ; WATCH k ; ECHO x ; EXEC ; EXEC ; DISCARD ; MULTI ; nope ; EXEC ; MULTI ; PING ; DISCARD ; MULTI ; ECHO ; EXEC ; WATCH k ; UNWATCH`,
	`MULTI ; SLOWLOG RESET ; LATENCY RESET ; CLIENT nope ; EXEC ; MULTI ; RESET ; EXEC ; MULTI ; EXEC x ; EXEC ; MULTI ; UNWATCH ; WATCH ; EXEC`,
	`nope ; nope a ; nope "" ; subscribe ; "" ; " " ; a|b`,
}

// testConversations: the same, where one command depends on another.
func testConversations(t *testing.T, r *reference) {
	for _, line := range conversations {
		cmds := words(line)
		for _, cmd := range cmds {
			if name := r.fullName(cmd); r.ours[name] && !r.askable(cmd) {
				t.Errorf("%q cannot be compared", cmd)
			}
		}
		if strings.HasPrefix(line, "nope") { // SUBSCRIBE is not implemented, like nope
			cmds = append(cmds[:3], cmds[4:]...)
		}
		r.check(t, cmds...)
	}
}

// testParts: the parts of replies have the same type as in Redis.
func testParts(t *testing.T, r *reference) {
	for _, line := range []string{
		"HELLO 3", "ROLE", "TIME", "ACL GETUSER default", "ACL LIST", "CLIENT TRACKINGINFO", "CLUSTER SLOTS", "CLUSTER SHARDS", "MEMORY STATS",
		"COMMAND INFO watch", "COMMAND INFO config", "COMMAND INFO client|id", "COMMAND DOCS watch", "COMMAND DOCS auth", "COMMAND DOCS hello",
		"COMMAND GETKEYSANDFLAGS WATCH a", "CONFIG GET save", "CLIENT HELP",
	} {
		cmd := words(line)
		ours, theirs := r.serve(t, 3, cmd)[0], r.ask(t, r.node(cmd[0]), 3, cmd)[0]
		if problem := misfit(line, ours, theirs); problem != "" {
			t.Error(problem)
		}
	}
}

// misfit describes a part of our reply that theirs does not have, or has with another
// type; theirs may have more.
func misfit(where string, ours, theirs answer) string {
	if ours.kind != theirs.kind {
		return fmt.Sprintf("%s: ours is %v, theirs %v", where, ours, theirs)
	}
	if ours.kind != '%' {
		if len(ours.parts) > 0 && len(theirs.parts) == 0 {
			return fmt.Sprintf("%s: theirs is empty", where)
		}
		for i := range min(len(ours.parts), len(theirs.parts)) {
			if problem := misfit(fmt.Sprint(where, " ", i), ours.parts[i], theirs.parts[i]); problem != "" {
				return problem
			}
		}
		return ""
	}
	for i := 0; i < len(ours.parts); i += 2 {
		at := -1
		for j := 0; j < len(theirs.parts); j += 2 {
			if theirs.parts[j].text == ours.parts[i].text {
				at = j
			}
		}
		if at < 0 {
			return fmt.Sprintf("%s: theirs has no %s", where, ours.parts[i].text)
		}
		if problem := misfit(where+" "+ours.parts[i].text, ours.parts[i+1], theirs.parts[at+1]); problem != "" {
			return problem
		}
	}
	return ""
}

// serverCommands are commands of Redis that concern its process and its replicas.
var serverCommands = words("bgrewriteaof bgsave debug failover lastsave lolwut module pfdebug pfselftest psync replconf replicaof restore-asking save shutdown slaveof sync")[0]

// testData: the error for a command of data says what to send instead.
func testData(t *testing.T, r *reference) {
	seen := 0
	for name := range r.theirs {
		if r.ours[name] || strings.Contains(name, "|") || slices.ContainsFunc(serverCommands, func(s []byte) bool { return string(s) == name }) {
			continue
		}
		seen++
		instead := "RL.CHECK tenant op ip"
		if name == "flushall" || name == "flushdb" {
			instead = "RL.RESET tenant "
		}
		reply := r.serve(t, 2, words(strings.ToUpper(name)+" k"))[0]
		if !strings.HasPrefix(reply.text, "ERR unknown command '") || !strings.Contains(reply.text, instead) {
			t.Errorf("%s: %v", name, reply)
		}
	}
	if seen < 150 {
		t.Errorf("only %d commands of data", seen)
	}
}

// testInfo: the fields of INFO that clients read have their names in Redis, and the same
// value where that is required.
func testInfo(t *testing.T, r *reference) {
	fields := func(a answer) map[string]string {
		all := map[string]string{}
		for line := range strings.SplitSeq(a.text, "\r\n") {
			if name, value, found := strings.Cut(line, ":"); found {
				all[name] = value
			}
		}
		return all
	}
	for _, line := range []string{"INFO", "CLUSTER INFO"} {
		cmd := words(line)
		ours, theirs := fields(r.serve(t, 2, cmd)[0]), fields(r.ask(t, r.node(cmd[0]), 2, cmd)[0])
		for name := range ours {
			if _, found := theirs[name]; !found && !strings.HasPrefix(name, "limitgate_") {
				t.Errorf("%s of Redis has no %s", line, name)
			}
		}
		for _, name := range []string{"redis_mode", "loading", "role", "connected_slaves", "cluster_slots_assigned", "cluster_known_nodes", "cluster_size"} {
			if ours[name] != theirs[name] {
				t.Errorf("%s: %s is %q, of Redis %q", line, name, ours[name], theirs[name])
			}
		}
	}
}
