package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bypassKey makes a key, and returns the path of its private part and its JWKS.
func bypassKey(t *testing.T, id string) (private string, public map[string]any) {
	t.Helper()
	private = filepath.Join(t.TempDir(), id+".pem")
	jwks := private + ".json"
	if out, errs, code := run(t, nil, "bypass", "key", "--id", id, private, jwks); code != 0 || out+errs != "" {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	text, err := os.ReadFile(jwks)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(private); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the private key: %v, %v", info.Mode(), err)
	}
	if err := json.Unmarshal(text, &public); err != nil {
		t.Fatal(err)
	}
	return private, public
}

func bypassToken(t *testing.T, key, id string, more ...string) string {
	t.Helper()
	token, errs, code := run(t, nil, append([]string{"bypass", "token", "--key", key, "--id", id, "--name", "load test of search", "--rate", "3/h", "--for", "1h"}, more...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	return strings.TrimSpace(token)
}

// TestBypassTokens takes the way of docs/bypass.md: a key, a token, its use, its rate, its
// revocation, and a second key.
func TestBypassTokens(t *testing.T) {
	folder := t.TempDir()
	jwks, revoked := filepath.Join(folder, "bypass.json"), filepath.Join(folder, "revoked.txt")
	keys := func(sets ...map[string]any) {
		t.Helper()
		var all []any
		for _, s := range sets {
			all = append(all, s["keys"].([]any)...)
		}
		text, err := json.Marshal(map[string]any{"keys": all})
		if err != nil {
			t.Fatal(err)
		}
		replace(t, jwks, string(text))
	}
	first, firstPublic := bypassKey(t, "first")
	second, secondPublic := bypassKey(t, "second")
	keys(firstPublic, secondPublic)
	replace(t, revoked, "# none yet\n")
	g := serveUsers(t, []string{
		"user load on " + userRule("pw-load") + " ~acme +@check +@bypass", "user plain on " + userRule("pw-plain") + " ~* +@check",
	}, "--bypass-jwks", jwks, "--bypass-revoked", revoked)
	load, plain := g.as(t, "load", "pw-load"), g.as(t, "plain", "pw-plain")
	use := func(token string, more ...any) string {
		t.Helper()
		v, err := check(load, append([]any{"acme", "search", "192.0.2.99", 1, "BYPASS", token}, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		if v.left == -1 && v.source == "policy" && v.allowed {
			return "bypass"
		}
		return v.source
	}
	token := bypassToken(t, first, "load-1")
	for n, want := range []string{"bypass", "bypass", "bypass", "store", "store"} {
		if got := use(token); got != want {
			t.Errorf("use %d: %s, want %s", n+1, got, want)
		}
	}
	if _, err := check(plain, "acme", "-", "-", 1, "BYPASS", token); !fails(err, "NOPERM this user may not use bypass tokens") {
		t.Errorf("a token in other hands: %v", err)
	}
	for of, c := range map[string]struct{ token, want string }{
		"another tenant": {bypassToken(t, first, "other", "--tenant", "other"), "store"},
		"its tenant":     {bypassToken(t, second, "own", "--tenant", "acme"), "bypass"},
		"no token":       {"x.y.z", "store"},
	} {
		if got := use(c.token); got != c.want {
			t.Errorf("%s: %s, want %s", of, got, c.want)
		}
	}
	kept := bypassToken(t, second, "kept", "--rate", "1000/s")
	if got := use(kept); got != "bypass" {
		t.Errorf("before it is revoked: %s", got)
	}
	replace(t, revoked, "kept # lost on a train\n")
	eventually(t, "a revoked token is used", func() bool { return use(kept) == "store" })
	replace(t, revoked, "not an id\n")
	eventually(t, "a broken list is not reported", func() bool { return strings.Contains(g.get("/metrics"), "limitgate_bypass_revoked_stale 1") })
	if got := use(kept); got != "store" {
		t.Errorf("under a broken list: %s", got)
	}
	keys(firstPublic)
	own := bypassToken(t, second, "own-2", "--rate", "1000/s")
	eventually(t, "a token of a key that was removed is used", func() bool { return use(own) == "store" })
	keys(firstPublic, secondPublic)
	eventually(t, "a token of a key that was added is not used", func() bool { return use(own) == "bypass" })
	metrics, log := g.get("/metrics"), g.output()
	for _, want := range []string{`limitgate_bypass_total{result="over_rate"} 2`, `limitgate_bypass_total{result="other_tenant"} 1`, "limitgate_bypass_keys 2"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics have not %s", want)
		}
	}
	if want := `msg="bypass token used" id=load-1 name="load test of search" outcome=used user=load tenant=acme op=search cost=1`; strings.Count(log, want) != 3 {
		t.Errorf("the log has not three lines with %s:\n%s", want, log)
	}
	if strings.Contains(log, "192.0.2.99") || strings.Contains(log, token) {
		t.Error("the log has an address, or the token")
	}
}

// TestBypassMistakes checks what the command line refuses.
func TestBypassMistakes(t *testing.T) {
	key, _ := bypassKey(t, "k")
	if _, errs, code := run(t, nil, "bypass", "key", "--id", "k2", key+"2", key+".json"); code != 0 {
		t.Fatal(errs)
	}
	if text, err := os.ReadFile(key + ".json"); err != nil || !strings.Contains(string(text), `"k"`) || !strings.Contains(string(text), `"k2"`) {
		t.Errorf("the JWKS of two keys: %s, %v", text, err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"bypass"}, 64, "say key or token"},
		{[]string{"bypass", "key", key}, 64, "--id, and behind it the files"},
		{[]string{"bypass", "key", "--id", "other", key, key + ".json"}, 1, "exists already: name a new file"},
		{[]string{"bypass", "key", "--id", "k", key + "3", key + ".json"}, 1, "has a key k: choose another id"},
		{[]string{"bypass", "key", "--id", "k", key + "3", key}, 1, "read JWKS"},
		{[]string{"bypass", "token", "--key", key, "--id", "a", "--name", "n", "--rate", "1/s"}, 64, "--for is needed, a time of at most 8784h"},
		{[]string{"bypass", "token", "--key", key, "--id", "a", "--rate", "1/s", "--for", "1h"}, 64, "--name is needed"},
		{[]string{"hash-password", "word"}, 64, "with --stdin"},
		{[]string{"bypass", "token", "--key", key, "--id", "a b", "--name", "n", "--rate", "1/s", "--for", "1h"}, 64, "--id must be an id of 1 to 64"},
		{[]string{"bypass", "token", "--key", key, "--id", "a", "--name", "n", "--rate", "1", "--for", "1h"}, 64, "a rate is COUNT/PERIOD"},
		{[]string{"bypass", "token", "--key", "/dev/null", "--id", "a", "--name", "n", "--rate", "1/s", "--for", "1h"}, 1, "read key"},
		{[]string{"serve", "--bypass-jwks", key}, 1, "parse JWKS: it is in PEM: name the file of the public keys"},
		{[]string{"bypass", "token", "--key", key + ".json", "--id", "a", "--name", "n", "--rate", "1/s", "--for", "1h"}, 1, ".json: it has the public keys, which serve --bypass-jwks takes: name the file of the private key"},
	} {
		if out, errs, code := run(t, nil, c.args...); code != c.code || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%v: exit %d, %s%s; want %d and %s", c.args, code, out, errs, c.code, c.want)
		}
	}
}
