package jwtauth

import (
	"crypto/rsa"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/limitgate/limitgate/internal/jwks"
	"github.com/limitgate/limitgate/internal/jwks/jwkstest"
)

// open returns a Verifier of tokens that are signed by the keys of a file.
func open(t testing.TB, name string) *Verifier {
	t.Helper()
	keys, err := jwks.Open(t.Context(), jwks.Options{JWKS: name, ReadFile: func(path string, _ int) ([]byte, error) { return os.ReadFile(path) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return NewVerifier(keys, Options{Issuer: "issuer", Audience: "limitgate", TenantClaim: "tenant_id"})
}

func TestVerify(t *testing.T) {
	rs, es, ed := jwkstest.NewSigner(t, "rs", jwt.SigningMethodRS256), jwkstest.NewSigner(t, "es", jwt.SigningMethodES256), jwkstest.NewSigner(t, "ed", jwt.SigningMethodEdDSA)
	v := open(t, jwkstest.Write(t, jwkstest.Set(t, rs.JWK(t), es.JWK(t), ed.JWK(t))))
	for _, s := range []jwkstest.Signer{rs, es, ed, {ID: "rs", Method: jwt.SigningMethodPS512, Private: rs.Private}} {
		tenant, until, err := v.Verify(s.Token(t, nil))
		if err != nil || tenant != "acme" || time.Until(until) > time.Hour+leeway || time.Until(until) < 59*time.Minute {
			t.Errorf("%s: %q until %v, %v", s.Method.Alg(), tenant, until, err)
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
	secret, err := confused.SignedString(rs.Private.Public().(*rsa.PublicKey).N.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string, value any) func(jwt.MapClaims) { return func(c jwt.MapClaims) { c[name] = value } }
	remove := func(name string) func(jwt.MapClaims) { return func(c jwt.MapClaims) { delete(c, name) } }
	good := es.Token(t, nil)
	for name, c := range map[string]struct{ token, want string }{
		"alg none":            {none, "token signature is invalid"},
		"key confusion":       {secret, "token signature is invalid"},
		"another curve":       {jwkstest.Signer{ID: "es", Method: jwt.SigningMethodES384, Private: jwkstest.NewSigner(t, "", jwt.SigningMethodES384).Private}.Token(t, nil), "token signature is invalid"},
		"another key":         {jwkstest.Signer{ID: "es", Method: jwt.SigningMethodES256, Private: jwkstest.NewSigner(t, "", jwt.SigningMethodES256).Private}.Token(t, nil), "token signature is invalid"},
		"a key of another id": {jwkstest.Signer{ID: "rs", Method: jwt.SigningMethodES256, Private: es.Private}.Token(t, nil), "token signature is invalid"},
		"an unknown key":      {jwkstest.Signer{ID: "x", Method: jwt.SigningMethodES256, Private: es.Private}.Token(t, nil), `no key fits the token: its kid is "x"`},
		"a long kid":          {jwkstest.Signer{ID: strings.Repeat("k", 500), Method: jwt.SigningMethodES256, Private: es.Private}.Token(t, nil), `no key fits the token: its kid is "` + strings.Repeat("k", 64) + `"`},
		"no key of several":   {jwkstest.Signer{ID: "", Method: jwt.SigningMethodES256, Private: es.Private}.Token(t, nil), "no key fits the token: it has no kid"},
		"another issuer":      {es.Token(t, set("iss", "issuer2")), "its claim \"iss\" is not \"issuer\""},
		"no issuer":           {es.Token(t, remove("iss")), `its claim "iss" is missing`},
		"another audience":    {es.Token(t, set("aud", "other")), "its claim \"aud\" has no \"limitgate\""},
		"no audience":         {es.Token(t, remove("aud")), `its claim "aud" is missing`},
		"no end":              {es.Token(t, remove("exp")), `its claim "exp" is missing`},
		"it has ended":        {es.Token(t, set("exp", time.Now().Add(-leeway-time.Second).Unix())), "token is expired"},
		"it has not begun":    {es.Token(t, set("nbf", time.Now().Add(leeway+time.Minute).Unix())), "token is not valid yet"},
		"no tenant":           {es.Token(t, remove("tenant_id")), `it has no claim "tenant_id", which names the tenant`},
		"tenants":             {es.Token(t, set("tenant_id", []string{"acme"})), `its claim "tenant_id" is no text: the issuer has to write the tenant as one`},
		"a number":            {es.Token(t, set("tenant_id", 42)), `its claim "tenant_id" is no text`},
		"an empty tenant":     {es.Token(t, set("tenant_id", "")), `its claim "tenant_id" names no tenant`},
		"no tenant's name":    {es.Token(t, set("tenant_id", "-")), `its claim "tenant_id" names no tenant`},
		"a long token":        {es.Token(t, set("x", strings.Repeat("x", maxToken))), "it has more than 8192 bytes"},
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
	alone := open(t, jwkstest.Write(t, jwkstest.Set(t, es.JWK(t))))
	if _, _, err := alone.Verify(jwkstest.Signer{ID: "", Method: jwt.SigningMethodES256, Private: es.Private}.Token(t, nil)); err != nil {
		t.Errorf("the only key: %v", err)
	}
	if _, _, err := alone.Verify(rs.Token(t, nil)); err == nil {
		t.Error("a key that is not in the set is accepted")
	}
	nameless := es.JWK(t)
	delete(nameless, "kid")
	for name, keys := range map[string][]map[string]any{
		"the only key, without a name":  {nameless},
		"two keys of one name":          {with(rs.JWK(t), "kid", "es", "alg", "RS256"), es.JWK(t)},
		"two keys with their algorithm": {with(es.JWK(t), "alg", "ES384"), with(es.JWK(t), "alg", "ES256")},
	} {
		if _, _, err := open(t, jwkstest.Write(t, jwkstest.Set(t, keys...))).Verify(es.Token(t, nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// with returns a key with other members.
func with(k map[string]any, members ...string) map[string]any {
	for i := 0; i < len(members); i += 2 {
		k[members[i]] = members[i+1]
	}
	return k
}

func FuzzVerify(f *testing.F) {
	s := jwkstest.NewSigner(f, "k", jwt.SigningMethodEdDSA)
	v := open(f, jwkstest.Write(f, jwkstest.Set(f, s.JWK(f))))
	good := s.Token(f, nil)
	f.Add(good)
	f.Add(strings.Replace(good, ".", "..", 1))
	f.Fuzz(func(t *testing.T, token string) {
		if _, _, err := v.Verify(token); err == nil && token != good {
			t.Errorf("%q is accepted", token)
		} else if err != nil && len(err.Error()) > 700 {
			t.Errorf("the error is %q", err)
		}
	})
}
