package jwks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/limitgate/limitgate/internal/jwks/jwkstest"
)

func TestParseKeys(t *testing.T) {
	es, rs := jwkstest.NewSigner(t, "es", jwt.SigningMethodES256), jwkstest.NewSigner(t, "rs", jwt.SigningMethodRS256)
	with := func(s jwkstest.Signer, name string, value any) map[string]any {
		k := s.JWK(t)
		k[name] = value
		return k
	}
	oct := map[string]any{"kty": "oct", "kid": "s", "k": "c2VjcmV0"}
	for name, c := range map[string]struct {
		text []byte
		want string // an error, or the number of keys
	}{
		"secrets and others are left out": {jwkstest.Set(t, oct, es.JWK(t), with(es, "use", "enc"), map[string]any{"kty": "new"}, with(es, "crv", "P-999"), map[string]any{"kty": "OKP", "crv": "X25519"}, map[string]any{"kty": "new", "x": 5}, map[string]any{"kty": "RSA", "use": "enc", "n": "!!"}), "1"},
		"only others":                     {jwkstest.Set(t, oct), errNoKeys.Error()},
		"no keys":                         {jwkstest.Set(t), errNoKeys.Error()},
		"an empty object":                 {[]byte("{}"), errNoKeys.Error()},
		"no JSON":                         {[]byte("<html>"), `parse JWKS: it is not JSON of the form {"keys": [{"kty": "OKP", ...}]}: invalid character`},
		"a private key in PEM":            {[]byte("-----BEGIN PRIVATE KEY-----\n"), `parse JWKS: it is in PEM: name the file of the public keys, JSON of the form {"keys": `},
		"no object":                       {[]byte("[]"), `parse JWKS: it is not JSON of the form {"keys": [{"kty": "OKP", ...}]}`},
		"a short RSA key":                 {jwkstest.Set(t, with(rs, "n", jwkstest.Encode(make([]byte, 128)))), "key 1: n has 0 bits, and must have 2048 to 8192"},
		"an exponent of 1":                {jwkstest.Set(t, with(rs, "e", "AQ")), "key 1: e is no exponent of RSA"},
		"an even exponent":                {jwkstest.Set(t, with(rs, "e", "AQAA")), "key 1: e is no exponent of RSA"},
		"a point beside the curve":        {jwkstest.Set(t, es.JWK(t), with(es, "x", jwkstest.Encode(make([]byte, 32)))), "key 2: the point: "},
		"a short point":                   {jwkstest.Set(t, with(es, "x", "AQ")), "key 1: x and y must have 32 bytes"},
		"no base64":                       {jwkstest.Set(t, with(es, "x", "!!")), "parse JWKS: key 1: illegal base64"},
		"a short key of Ed25519":          {jwkstest.Set(t, map[string]any{"kty": "OKP", "crv": "Ed25519", "x": "AQ"}), "key 1: x is not the size of a key of Ed25519"},
		"many keys":                       {jwkstest.Set(t, make([]map[string]any, maxKeys+1)...), "parse JWKS: it has more than 100 keys"},
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

func FuzzKeys(f *testing.F) {
	f.Add(jwkstest.Set(f, jwkstest.NewSigner(f, "a", jwt.SigningMethodRS256).JWK(f), jwkstest.NewSigner(f, "b", jwt.SigningMethodES256).JWK(f)))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeys(text)
		if (err == nil) != (len(keys) > 0) {
			t.Errorf("%d keys, %v", len(keys), err)
		}
	})
}
