package commands_test

import (
	"crypto/ed25519"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/limitgate/limitgate/internal/bypass"
	"github.com/limitgate/limitgate/internal/jwks"
	"github.com/limitgate/limitgate/internal/jwks/jwkstest"
	"github.com/limitgate/limitgate/internal/users"
)

// newBypass returns the tokens of a key, and two of them: of a high rate, and of one unit.
func newBypass(t *testing.T) (tokens *bypass.Tokens, token, small string) {
	t.Helper()
	signer := jwkstest.NewSigner(t, "k", jwt.SigningMethodEdDSA)
	keys, err := jwks.Open(t.Context(), jwks.Options{JWKS: jwkstest.Write(t, jwkstest.Set(t, signer.JWK(t))), ReadFile: func(path string, _ int) ([]byte, error) { return os.ReadFile(path) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for id, rate := range map[string]string{"large": "1000000/h", "small": "1/h"} {
		c := &bypass.Claims{Name: "a test", Rate: rate}
		c.ID, c.ExpiresAt = id, jwt.NewNumericDate(clock.Add(time.Hour))
		if made[id], err = bypass.Sign(signer.Private.(ed25519.PrivateKey), "k", c); err != nil {
			t.Fatal(err)
		}
	}
	return bypass.New(keys, bypass.Options{Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return clock }}), made["large"], made["small"]
}

// TestBypass checks the option BYPASS: the rights that it needs, the options beside it, and that a
// request with a token takes nothing of any limit.
func TestBypass(t *testing.T) {
	set, err := users.Parse([]byte("user load on nopass ~a* +@check +@bypass\nuser plain on nopass ~* +@check\nuser ops on nopass ~* +@all\nuser some on nopass ~* +@all -@bypass"))
	if err != nil {
		t.Fatal(err)
	}
	tokens, token, small := newBypass(t)
	s := newSession(t, newHandler(t, handlerOptions{users: users.NewAuthenticator(set, nil), bypass: tokens}))
	expect := func(line, want string) {
		t.Helper()
		line = strings.ReplaceAll(strings.ReplaceAll(line, "TOKEN", token), "SMALL", small)
		reply, _ := serveAll(t, s, words(line))
		if got := string(reply); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.100q, want %s", line, got, want)
		}
	}
	const free = "*7\r\n:1\r\n:-1\r\n:-1\r\n:0\r\n:0\r\n$0\r\n\r\n$6\r\npolicy\r\n"
	expect("AUTH load x", "+OK")
	for _, line := range []string{
		"RL.CHECK acme - - BYPASS TOKEN", "rl.check acme GET 192.0.2.1 1000 bypass TOKEN", "RL.CHECK acme - - 5 DIM user BYPASS BYPASS TOKEN ID i",
		"RL.CHECK acme - - 5 ID i DIM user u BYPASS TOKEN", "RL.CHECK acme - - BYPASS SMALL",
	} {
		expect(line, free)
	}
	expect("RL.CHECK acme - - 5 BYPASS TOKEN HEADERS", "*8\r\n:1\r\n:-1\r\n")
	expect("RL.CHECK other - - BYPASS TOKEN", "-NOPERM this user may not check tenant 'other'")
	expect("RL.CHECK acme - - BYPASS", "-ERR syntax error: BYPASS needs a token behind it\r\n")
	expect("RL.CHECK acme - - BYPASS TOKEN BYPASS TOKEN", "-ERR invalid option 'BYPASS': it is there twice\r\n")
	expect("RL.CHECK acme - - BYPASS TOKEN 5", "-ERR invalid option '5'")
	for _, command := range []string{"RL.PEEK acme - -", "RL.RESERVE acme - - 5", "RL.ACQUIRE acme - -"} {
		expect("AUTH ops x ; "+command+" BYPASS TOKEN", "+OK\r\n-ERR invalid option 'BYPASS'")
	}
	// What the token does not admit the limits decide, and nothing else was taken of them.
	expect("AUTH load x ; RL.CHECK ab - - 20 BYPASS TOKEN ; RL.PEEK ab - -", "+OK\r\n"+free+"*7\r\n:1\r\n:20\r\n:19\r\n")
	expect("RL.CHECK ab - - BYPASS SMALL", "*7\r\n:1\r\n:20\r\n:19\r\n")
	expect("RL.CHECK ab - - 19 BYPASS wrong", "*7\r\n:1\r\n:20\r\n:0\r\n")
	expect("RL.CHECK ab - - BYPASS SMALL", "*7\r\n:0\r\n:20\r\n:0\r\n")
	expect("RL.CHECK ab - - BYPASS TOKEN ; RL.CHECK ab - -", free+"*7\r\n:0\r\n")
	expect("RL.CHECK ab - - ; RL.CHECK ab - - BYPASS TOKEN", "*7\r\n:0\r\n")
	expect("RL.CHECK acme - 192.0.2.1 BYPASS TOKEN", free) // an address that a limit blocks
	expect("MULTI ; RL.CHECK acme - - BYPASS TOKEN ; EXEC", "+OK\r\n+QUEUED\r\n*1\r\n"+free)
	for _, user := range []string{"plain", "some"} {
		expect("AUTH "+user+" x ; RL.CHECK acme - - BYPASS TOKEN", "+OK\r\n-NOPERM this user may not use bypass tokens\r\n")
	}
	expect("AUTH ops x ; RL.CHECK acme - - BYPASS TOKEN", "+OK\r\n"+free)
	expect("ACL DRYRUN plain RL.CHECK a - - 1 DIM BYPASS x", "+OK")
	expect("ACL DRYRUN plain RL.CHECK a - - 1 BYPASS x", "$36\r\nUser plain may not use bypass tokens")
	expect("RL.CHECK bb - - BYPASS \"\"", "*7\r\n:1\r\n:20\r\n:19\r\n") // no token
	expect("ACL DRYRUN load RL.CHECK a - - 1 BYPASS x", "+OK")
}

// TestBypassIsUsedOnce checks that a pipeline which is parsed twice, because it has other commands
// or a mistake, uses each token once.
func TestBypassIsUsedOnce(t *testing.T) {
	for _, rest := range []string{"", " ; PING", " ; RL.CHECK acme", " ; RL.CHECK acme - - ; RL.CHECK acme - - x y z", " ; CL.THROTTLE k 1 1 1 0"} {
		tokens, _, small := newBypass(t)
		s := newSession(t, newHandler(t, handlerOptions{bypass: tokens}))
		cmds := words("RL.CHECK acme - - BYPASS " + small + rest)
		reply, begun, decided := s.Start(time.Time{}, cmds, nil, func(uint64) {}, 1)
		if !begun {
			reply, _ = serveAll(t, s, cmds)
		} else if !decided {
			t.Fatal("a decision in memory waits")
		}
		if !strings.HasPrefix(string(reply), "*7\r\n:1\r\n:-1\r\n") {
			t.Errorf("%s: %.60q", rest, reply)
		}
		if used, over := tokens.Count(bypass.Used), tokens.Count(bypass.OverRate); used != 1 || over != 0 {
			t.Errorf("%s: used %d times, and %d times over its rate", rest, used, over)
		}
	}
}

// TestNoBypass checks a proxy without keys.
func TestNoBypass(t *testing.T) {
	s := newSession(t, newHandler(t, handlerOptions{}))
	reply, _ := serveAll(t, s, words("RL.CHECK acme - - BYPASS x"))
	if want := "-ERR invalid option 'BYPASS': the proxy has no keys of bypass tokens, which --bypass-jwks names\r\n"; string(reply) != want {
		t.Errorf("%q, want %q", reply, want)
	}
}
