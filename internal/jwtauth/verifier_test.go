package jwtauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
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
)

// signer is a private key and its name.
type signer struct {
	id      string
	method  jwt.SigningMethod
	private crypto.Signer
}

func newSigner(t testing.TB, id string, method jwt.SigningMethod) signer {
	t.Helper()
	var private crypto.Signer
	var err error
	switch method {
	case jwt.SigningMethodES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jwt.SigningMethodES384:
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jwt.SigningMethodEdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return signer{id, method, private}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwk returns the public key as a member of a JWKS.
func (s signer) jwk(t testing.TB) map[string]any {
	t.Helper()
	out := map[string]any{"kid": s.id, "use": "sig"}
	switch k := s.private.Public().(type) {
	case *rsa.PublicKey:
		out["kty"], out["n"], out["e"] = "RSA", encode(k.N.Bytes()), "AQAB"
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		half := len(point) / 2
		out["kty"], out["crv"], out["x"], out["y"] = "EC", k.Curve.Params().Name, encode(point[1:1+half]), encode(point[1+half:])
	case ed25519.PublicKey:
		out["kty"], out["crv"], out["x"] = "OKP", "Ed25519", encode(k)
	}
	return out
}

// jwks returns a JWKS of keys.
func jwks(t testing.TB, keys ...map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// token returns a token for the tenant acme; change changes its claims.
func (s signer) token(t testing.TB, change func(jwt.MapClaims)) string {
	t.Helper()
	claims := jwt.MapClaims{"iss": "issuer", "aud": []string{"other", "limitgate"}, "exp": time.Now().Add(time.Hour).Unix(), "tenant_id": "acme"}
	if change != nil {
		change(claims)
	}
	token := jwt.NewWithClaims(s.method, claims)
	if s.id != "" {
		token.Header["kid"] = s.id
	}
	text, err := token.SignedString(s.private)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func open(t testing.TB, name string) *Verifier {
	t.Helper()
	v, err := Open(t.Context(), Options{JWKS: name, Issuer: "issuer", Audience: "limitgate", TenantClaim: "tenant_id", ReadFile: func(path string, _ int) ([]byte, error) { return os.ReadFile(path) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func writeKeys(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	rs, es, ed := newSigner(t, "rs", jwt.SigningMethodRS256), newSigner(t, "es", jwt.SigningMethodES256), newSigner(t, "ed", jwt.SigningMethodEdDSA)
	writeKeys(t, path, jwks(t, rs.jwk(t), es.jwk(t), ed.jwk(t)))
	v := open(t, path)
	for _, s := range []signer{rs, es, ed, {"rs", jwt.SigningMethodPS512, rs.private}} {
		tenant, until, err := v.Verify(s.token(t, nil))
		if err != nil || tenant != "acme" || time.Until(until) > time.Hour+leeway || time.Until(until) < 59*time.Minute {
			t.Errorf("%s: %q until %v, %v", s.method.Alg(), tenant, until, err)
		}
	}
	unsigned := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"iss": "issuer", "aud": "limitgate", "exp": time.Now().Add(time.Hour).Unix(), "tenant_id": "acme"})
	unsigned.Header["kid"] = "rs"
	none, err := unsigned.SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	// The public key of another algorithm as a secret of HMAC.
	confused := jwt.NewWithClaims(jwt.SigningMethodHS256, unsigned.Claims)
	confused.Header["kid"] = "rs"
	secret, err := confused.SignedString(rs.private.Public().(*rsa.PublicKey).N.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string, value any) func(jwt.MapClaims) { return func(c jwt.MapClaims) { c[name] = value } }
	remove := func(name string) func(jwt.MapClaims) { return func(c jwt.MapClaims) { delete(c, name) } }
	good := es.token(t, nil)
	for name, c := range map[string]struct{ token, want string }{
		"alg none":            {none, "token signature is invalid"},
		"key confusion":       {secret, "token signature is invalid"},
		"another curve":       {signer{"es", jwt.SigningMethodES384, newSigner(t, "", jwt.SigningMethodES384).private}.token(t, nil), "token signature is invalid"},
		"another key":         {signer{"es", jwt.SigningMethodES256, newSigner(t, "", jwt.SigningMethodES256).private}.token(t, nil), "token signature is invalid"},
		"a key of another id": {signer{"rs", jwt.SigningMethodES256, es.private}.token(t, nil), "token signature is invalid"},
		"an unknown key":      {signer{"x", jwt.SigningMethodES256, es.private}.token(t, nil), "no key fits the token"},
		"no key of several":   {signer{"", jwt.SigningMethodES256, es.private}.token(t, nil), "no key fits the token"},
		"another issuer":      {es.token(t, set("iss", "issuer2")), "token has invalid issuer"},
		"no issuer":           {es.token(t, remove("iss")), "token is missing required claim"},
		"another audience":    {es.token(t, set("aud", "other")), "token has invalid audience"},
		"no audience":         {es.token(t, remove("aud")), "token is missing required claim"},
		"no end":              {es.token(t, remove("exp")), "token is missing required claim"},
		"it has ended":        {es.token(t, set("exp", time.Now().Add(-leeway-time.Second).Unix())), "token is expired"},
		"it has not begun":    {es.token(t, set("nbf", time.Now().Add(leeway+time.Minute).Unix())), "token is not valid yet"},
		"no tenant":           {es.token(t, remove("tenant_id")), `its claim "tenant_id" names no tenant`},
		"tenants":             {es.token(t, set("tenant_id", []string{"acme"})), `its claim "tenant_id" names no tenant`},
		"an empty tenant":     {es.token(t, set("tenant_id", "")), `its claim "tenant_id" names no tenant`},
		"no tenant's name":    {es.token(t, set("tenant_id", "-")), `its claim "tenant_id" names no tenant`},
		"a long token":        {es.token(t, set("x", strings.Repeat("x", maxToken))), "it has more than 8192 bytes"},
		"a changed token":     {strings.Replace(good, ".", ".e", 1), ""},
		"half a token":        {good[:len(good)/2], "token is malformed"},
		"nothing":             {"", "token is malformed"},
		"dots":                {"..", "token is malformed"},
	} {
		_, _, err := v.Verify(c.token)
		if err == nil || c.want != "" && !strings.HasSuffix(err.Error(), c.want) && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	writeKeys(t, path, jwks(t, es.jwk(t)))
	if err := v.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Verify(signer{"", jwt.SigningMethodES256, es.private}.token(t, nil)); err != nil {
		t.Errorf("the only key: %v", err)
	}
	nameless := es.jwk(t)
	delete(nameless, "kid")
	for name, keys := range map[string][]map[string]any{
		"the only key, without a name":  {nameless},
		"two keys of one name":          {with(rs.jwk(t), "kid", "es", "alg", "RS256"), es.jwk(t)},
		"two keys with their algorithm": {with(es.jwk(t), "alg", "ES384"), with(es.jwk(t), "alg", "ES256")},
	} {
		writeKeys(t, path, jwks(t, keys...))
		if err := v.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := v.Verify(es.token(t, nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := v.Verify(rs.token(t, nil)); err == nil {
		t.Error("a key that was removed is accepted")
	}
}

// with returns a key with other members.
func with(k map[string]any, members ...string) map[string]any {
	for i := 0; i < len(members); i += 2 {
		k[members[i]] = members[i+1]
	}
	return k
}

func TestParseKeys(t *testing.T) {
	es, rs := newSigner(t, "es", jwt.SigningMethodES256), newSigner(t, "rs", jwt.SigningMethodRS256)
	with := func(s signer, name string, value any) map[string]any {
		k := s.jwk(t)
		k[name] = value
		return k
	}
	oct := map[string]any{"kty": "oct", "kid": "s", "k": "c2VjcmV0"}
	for name, c := range map[string]struct {
		text []byte
		want string // an error, or the number of keys
	}{
		"secrets and others are left out": {jwks(t, oct, es.jwk(t), with(es, "use", "enc"), map[string]any{"kty": "new"}, with(es, "crv", "P-999"), map[string]any{"kty": "OKP", "crv": "X25519"}, map[string]any{"kty": "new", "x": 5}, map[string]any{"kty": "RSA", "use": "enc", "n": "!!"}), "1"},
		"only others":                     {jwks(t, oct), errNoKeys.Error()},
		"no keys":                         {jwks(t), errNoKeys.Error()},
		"an empty object":                 {[]byte("{}"), errNoKeys.Error()},
		"no JSON":                         {[]byte("<html>"), "parse JWKS: invalid character"},
		"no object":                       {[]byte("[]"), "parse JWKS: json: cannot unmarshal"},
		"a short RSA key":                 {jwks(t, with(rs, "n", encode(make([]byte, 128)))), "key 1: n has 0 bits, and must have 2048 to 8192"},
		"an exponent of 1":                {jwks(t, with(rs, "e", "AQ")), "key 1: e is no exponent of RSA"},
		"an even exponent":                {jwks(t, with(rs, "e", "AQAA")), "key 1: e is no exponent of RSA"},
		"a point beside the curve":        {jwks(t, es.jwk(t), with(es, "x", encode(make([]byte, 32)))), "key 2: the point: "},
		"a short point":                   {jwks(t, with(es, "x", "AQ")), "key 1: x and y must have 32 bytes"},
		"no base64":                       {jwks(t, with(es, "x", "!!")), "parse JWKS: key 1: illegal base64"},
		"a short key of Ed25519":          {jwks(t, map[string]any{"kty": "OKP", "crv": "Ed25519", "x": "AQ"}), "key 1: x is not the size of a key of Ed25519"},
		"many keys":                       {jwks(t, make([]map[string]any, maxKeys+1)...), "parse JWKS: it has more than 100 keys"},
	} {
		keys, err := parseKeys(c.text)
		got := fmt.Sprint(len(keys))
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestKeysByHTTPS: keys rotate, and a server that hangs, lies or floods leaves the earlier ones
// in force while tokens are checked without waiting.
func TestKeysByHTTPS(t *testing.T) {
	first, second := newSigner(t, "first", jwt.SigningMethodES256), newSigner(t, "second", jwt.SigningMethodES256)
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
	v := &Verifier{options: open(t, writeTemp(t, jwks(t, first.jwk(t)))).options, client: server.Client(), unknown: make(chan struct{}, 1)}
	v.client.CheckRedirect = newClient().CheckRedirect
	v.options.JWKS = server.URL
	v.parser = open(t, writeTemp(t, jwks(t, first.jwk(t)))).parser
	v.keys.Store(&[]key{})
	accepts := func(s signer) bool {
		_, _, err := v.Verify(s.token(t, nil))
		return err == nil
	}
	refresh := func(with func(http.ResponseWriter, *http.Request)) error {
		reply <- with
		return v.refresh(t.Context())
	}
	if accepts(first) {
		t.Error("without keys a token is accepted")
	}
	if err := refresh(send(jwks(t, first.jwk(t)))); err != nil || !accepts(first) || accepts(second) {
		t.Errorf("the first key: %v", err)
	}
	if err := refresh(send(jwks(t, first.jwk(t), second.jwk(t)))); err != nil || !accepts(first) || !accepts(second) {
		t.Errorf("both keys: %v", err)
	}
	if err := refresh(send(jwks(t, second.jwk(t)))); err != nil || accepts(first) || !accepts(second) {
		t.Errorf("the second key: %v", err)
	}
	for name, with := range map[string]func(http.ResponseWriter, *http.Request){
		"an error":             func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"an empty set":         send([]byte(`{"keys":[]}`)),
		"nothing":              send(nil),
		"a flood":              send(append(jwks(t, first.jwk(t)), make([]byte, maxJWKS)...)),
		"half a set":           send(jwks(t, first.jwk(t))[:40]),
		"a redirect to http":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://"+r.Host, http.StatusFound) },
		"a hang-up":            func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a set of secrets":     send([]byte(`{"keys":[{"kty":"oct","kid":"second","k":"AQ"}]}`)),
		"a malformed key more": send(jwks(t, second.jwk(t), map[string]any{"kty": "RSA", "kid": "x"})),
	} {
		if err := refresh(with); err == nil || v.Keys() != 1 || !accepts(second) {
			t.Errorf("%s: %v, %d keys", name, err, v.Keys())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	hanging, done := make(chan struct{}), make(chan error)
	reply <- func(_ http.ResponseWriter, r *http.Request) {
		close(hanging)
		<-r.Context().Done()
	}
	go func() { done <- v.refresh(ctx) }()
	<-hanging
	if !accepts(second) || accepts(first) {
		t.Error("while the server hangs, tokens are checked otherwise")
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a cancelled read succeeds")
	}
	if v.Failures() != 10 {
		t.Errorf("%d failures", v.Failures())
	}
}

func writeTemp(t testing.TB, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	writeKeys(t, path, text)
	return path
}

// TestRefresh: keys are read again from time to time, and soon if a token names an unknown one,
// however many such tokens come.
func TestRefresh(t *testing.T) {
	old, next := newSigner(t, "old", jwt.SigningMethodES256), newSigner(t, "next", jwt.SigningMethodES256)
	path := writeTemp(t, jwks(t, old.jwk(t)))
	synctest.Test(t, func(t *testing.T) {
		v := open(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- v.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		token := next.token(t, nil)
		ask := func() bool {
			_, _, err := v.Verify(token)
			return err == nil
		}
		writeKeys(t, path, []byte("broken"))
		for range 1000 { // a flood of unknown keys for 100 s is 10 reads
			if ask() {
				t.Fatal("a key that is nowhere is accepted")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := v.Failures(); n < 8 || n > 11 {
			t.Errorf("%d reads", n)
		}
		writeKeys(t, path, jwks(t, old.jwk(t), next.jwk(t)))
		_ = ask() // names the unknown key
		time.Sleep(2 * refreshPause)
		if !ask() {
			t.Error("a new key is not found")
		}
		writeKeys(t, path, jwks(t, old.jwk(t)))
		time.Sleep(refreshEvery + 2*refreshPause)
		if ask() {
			t.Error("a key that is gone is accepted after some time")
		}
	})
}

func FuzzVerify(f *testing.F) {
	s := newSigner(f, "k", jwt.SigningMethodEdDSA)
	v := open(f, writeTemp(f, jwks(f, s.jwk(f))))
	good := s.token(f, nil)
	f.Add(good)
	f.Add(strings.Replace(good, ".", "..", 1))
	f.Fuzz(func(t *testing.T, token string) {
		if _, _, err := v.Verify(token); err == nil && token != good {
			t.Errorf("%q is accepted", token)
		} else if err != nil && len(err.Error()) > 100 {
			t.Errorf("the error is %q", err)
		}
	})
}

func FuzzKeys(f *testing.F) {
	f.Add(jwks(f, newSigner(f, "a", jwt.SigningMethodRS256).jwk(f), newSigner(f, "b", jwt.SigningMethodES256).jwk(f)))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeys(text)
		if (err == nil) != (len(keys) > 0) {
			t.Errorf("%d keys, %v", len(keys), err)
		}
	})
}
