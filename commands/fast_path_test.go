package commands_test

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
)

// checkLines are checks, commands like them, and commands that change how checks are answered.
var checkLines = []string{
	"RL.CHECK free - - 1", "RL.CHECK free - -", "rl.check free search 192.0.2.1 2", "RL.CHECK free - - 0", "RL.CHECK free - - 1 HEADERS",
	"RL.CHECK free - - HEADERS", "RL.CHECK free - - 1 ID a", "RL.CHECK free - - 01", "RL.CHECK free - 1.2.3 1", "RL.CHECK - - - 1", "RL.CHECK free",
	"RL.CHECK fr}ee - - 1", "RL.CHECK f%ee - 2001:db8::1", "RL.PEEK free - -", "RL.CHECK free - - 1000000", "RL.CHECK acme search -",
	"RL.CHECK free \"POST /pay\" -", "RL.CHECK free \"POST /pay\" - 2", "CLIENT LIST", "RL.RESET free", "MULTI", "EXEC", "DISCARD", "CLIENT REPLY OFF", "CLIENT REPLY SKIP", "CLIENT REPLY ON", "HELLO 3", "HELLO 2",
	"RESET", "AUTH acme acme-secret", "AUTH ops ops-secret", "AUTH reader reader-secret", "RL.CHECK acme - -", "RL.CHECK banned - -", "PING", "CL.THROTTLE free 5 1 1 1", "RL.REFUND free - - 1",
}

// integers are the integers of replies.
var integers = regexp.MustCompile(`:-?[0-9]+\r\n`)

// TestFast checks that a session answers each pipeline as Serve alone answers it, byte by byte,
// whatever commands stand before and between checks.
func TestFast(t *testing.T) {
	random := rand.New(rand.NewPCG(storetest.Seed(t), 7))
	now := clock
	for _, secured := range []bool{false, true} {
		o := handlerOptions{now: func() time.Time { return now }}
		if secured {
			o.users = testUsers(t)
		}
		plain, fast := newSession(t, newHandler(t, o)), newSession(t, newHandler(t, o))
		answered := 0
		for range 20_000 {
			var lines []string
			for range 1 + random.IntN(8) {
				n := random.IntN(len(checkLines))
				if random.IntN(2) == 0 {
					n %= 3
				}
				lines = append(lines, checkLines[n])
			}
			cmds := words(strings.Join(lines, " ; "))
			want, _ := serveOthers(t, plain, cmds)
			got, rest := serveFast(fast, cmds)
			answered += len(cmds) - len(rest)
			others, _ := serveOthers(t, fast, rest)
			got = append(got, others...)
			if slices.Contains(lines, "RL.RESET free") { // which counts expired buckets that the sweep has not met
				got, want = integers.ReplaceAll(got, []byte(":0\r\n")), integers.ReplaceAll(want, []byte(":0\r\n"))
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%s:\n%q\nwant\n%q", strings.Join(lines, " ; "), got, want)
			}
			now = now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
		}
		t.Logf("%d commands answered fast", answered)
		if answered < 1000 {
			t.Error("too few")
		}
	}
}
