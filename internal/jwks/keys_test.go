package jwks

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/limitgate/limitgate/internal/jwks/jwkstest"
)

func open(t testing.TB, name string) *Keys {
	t.Helper()
	k, err := Open(t.Context(), Options{JWKS: name, ReadFile: func(path string, _ int) ([]byte, error) { return os.ReadFile(path) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// finds reports whether the keys have that of a signer's token.
func finds(t testing.TB, k *Keys, s jwkstest.Signer) bool {
	_, err := jwt.NewParser(jwt.WithValidMethods(Algorithms)).Parse(s.Token(t, nil), k.Find)
	return err == nil
}

func writeKeys(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOpenMistake: the error of a file that is no JWKS names the file, and is not logged beside.
func TestOpenMistake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	writeKeys(t, path, []byte(`{"keys": "x"}`))
	var logged strings.Builder
	_, err := Open(t.Context(), Options{JWKS: path, ReadFile: func(path string, _ int) ([]byte, error) { return os.ReadFile(path) }, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	if err == nil || !strings.HasPrefix(err.Error(), path+": parse JWKS: ") || logged.Len() > 0 {
		t.Errorf("%v, and the log has %s", err, logged.String())
	}
}

// TestKeysByHTTPS: keys rotate, and a server that hangs, lies or floods leaves the earlier ones
// in force while tokens are checked without waiting.
func TestKeysByHTTPS(t *testing.T) {
	first, second := jwkstest.NewSigner(t, "first", jwt.SigningMethodES256), jwkstest.NewSigner(t, "second", jwt.SigningMethodES256)
	reply := make(chan func(w http.ResponseWriter, r *http.Request), 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case with := <-reply:
			with(w, r)
		default: // the client tries again after a hang-up
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer server.Close()
	send := func(text []byte) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }
	}
	k := open(t, jwkstest.Write(t, jwkstest.Set(t, first.JWK(t))))
	k.client = server.Client()
	k.client.CheckRedirect = newClient().CheckRedirect
	k.options.JWKS = server.URL
	k.present.Store(&[]key{})
	accepts := func(s jwkstest.Signer) bool { return finds(t, k, s) }
	refresh := func(with func(http.ResponseWriter, *http.Request)) error {
		reply <- with
		return k.refresh(t.Context())
	}
	if accepts(first) {
		t.Error("without keys a token is accepted")
	}
	if err := refresh(send(jwkstest.Set(t, first.JWK(t)))); err != nil || !accepts(first) || accepts(second) {
		t.Errorf("the first key: %v", err)
	}
	if err := refresh(send(jwkstest.Set(t, first.JWK(t), second.JWK(t)))); err != nil || !accepts(first) || !accepts(second) {
		t.Errorf("both keys: %v", err)
	}
	if err := refresh(send(jwkstest.Set(t, second.JWK(t)))); err != nil || accepts(first) || !accepts(second) {
		t.Errorf("the second key: %v", err)
	}
	for name, with := range map[string]func(http.ResponseWriter, *http.Request){
		"an error":             func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"an empty set":         send([]byte(`{"keys":[]}`)),
		"nothing":              send(nil),
		"a flood":              send(append(jwkstest.Set(t, first.JWK(t)), make([]byte, maxJWKS)...)),
		"half a set":           send(jwkstest.Set(t, first.JWK(t))[:40]),
		"a redirect to http":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://"+r.Host, http.StatusFound) },
		"a hang-up":            func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a set of secrets":     send([]byte(`{"keys":[{"kty":"oct","kid":"second","k":"AQ"}]}`)),
		"a malformed key more": send(jwkstest.Set(t, second.JWK(t), map[string]any{"kty": "RSA", "kid": "x"})),
	} {
		if err := refresh(with); err == nil || k.Len() != 1 || !accepts(second) {
			t.Errorf("%s: %v, %d keys", name, err, k.Len())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	hanging, done := make(chan struct{}), make(chan error)
	reply <- func(_ http.ResponseWriter, r *http.Request) {
		close(hanging)
		<-r.Context().Done()
	}
	go func() { done <- k.refresh(ctx) }()
	<-hanging
	if !accepts(second) || accepts(first) {
		t.Error("while the server hangs, tokens are checked otherwise")
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a cancelled read succeeds")
	}
	if k.Failures() != 10 {
		t.Errorf("%d failures", k.Failures())
	}
}

// TestRefresh: keys are read again from time to time, and soon if a token names an unknown one,
// however many such tokens come.
func TestRefresh(t *testing.T) {
	old, next := jwkstest.NewSigner(t, "old", jwt.SigningMethodES256), jwkstest.NewSigner(t, "next", jwt.SigningMethodES256)
	path := jwkstest.Write(t, jwkstest.Set(t, old.JWK(t)))
	synctest.Test(t, func(t *testing.T) {
		k := open(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		ask := func() bool { return finds(t, k, next) }
		writeKeys(t, path, []byte("broken"))
		for range 1000 { // a flood of unknown keys for 100 s is 10 reads
			if ask() {
				t.Fatal("a key that is nowhere is accepted")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := k.Failures(); n < 8 || n > 11 {
			t.Errorf("%d reads", n)
		}
		writeKeys(t, path, jwkstest.Set(t, old.JWK(t), next.JWK(t)))
		_ = ask() // names the unknown key
		time.Sleep(2 * refreshPause)
		if !ask() {
			t.Error("a new key is not found")
		}
		writeKeys(t, path, jwkstest.Set(t, old.JWK(t)))
		time.Sleep(refreshEvery + 2*refreshPause)
		if ask() {
			t.Error("a key that is gone is accepted after some time")
		}
	})
}
