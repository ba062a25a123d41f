// Package jwkstest signs tokens, and writes the public keys of the signers, for tests.
package jwkstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Signer is a private key and its name.
type Signer struct {
	ID      string
	Method  jwt.SigningMethod
	Private crypto.Signer
}

// NewSigner returns a Signer with a new private key of the method.
func NewSigner(t testing.TB, id string, method jwt.SigningMethod) Signer {
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
	return Signer{id, method, private}
}

// Encode encodes bytes in base64url.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// JWK returns the public key as a member of a JWKS.
func (s Signer) JWK(t testing.TB) map[string]any {
	t.Helper()
	out := map[string]any{"kid": s.ID, "use": "sig"}
	switch k := s.Private.Public().(type) {
	case *rsa.PublicKey:
		out["kty"], out["n"], out["e"] = "RSA", Encode(k.N.Bytes()), "AQAB"
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		half := len(point) / 2
		out["kty"], out["crv"], out["x"], out["y"] = "EC", k.Curve.Params().Name, Encode(point[1:1+half]), Encode(point[1+half:])
	case ed25519.PublicKey:
		out["kty"], out["crv"], out["x"] = "OKP", "Ed25519", Encode(k)
	}
	return out
}

// Set returns a JWKS of keys.
func Set(t testing.TB, keys ...map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Token returns a token for the tenant acme; change changes its claims.
func (s Signer) Token(t testing.TB, change func(jwt.MapClaims)) string {
	t.Helper()
	claims := jwt.MapClaims{"iss": "issuer", "aud": []string{"other", "limitgate"}, "exp": time.Now().Add(time.Hour).Unix(), "tenant_id": "acme"}
	if change != nil {
		change(claims)
	}
	token := jwt.NewWithClaims(s.Method, claims)
	if s.ID != "" {
		token.Header["kid"] = s.ID
	}
	text, err := token.SignedString(s.Private)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Write writes a JWKS to a new file, and returns its path.
func Write(t testing.TB, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
