package jwks

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
)

// Bounds of a JWKS: issuers have a handful of keys, of some hundred bytes each. RFC 7518
// demands RSA keys of 2048 bits at least, and a signature of a larger one than 8192 takes long
// to check.
const (
	maxJWKS    = 1 << 20 // bytes
	maxKeys    = 100
	minRSABits = 2048
	maxRSABits = 8192
)

// key is a public key of a JWKS.
type key struct {
	id        string
	algorithm string // the only one that it is for, or ""
	public    any    // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// equal reports whether two keys are the same.
func (k key) equal(o key) bool {
	public, ok := k.public.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.id == o.id && k.algorithm == o.algorithm && public.Equal(o.public)
}

// errNoKeys is returned for a JWKS without a usable key.
var errNoKeys = errors.New("the JWKS has no public key for signatures of RSA, ECDSA or Ed25519")

// parseKeys parses a JWKS. Keys for other purposes or of unknown kinds are left out: a set may
// have keys for other software. A key that is malformed is an error.
func parseKeys(text []byte) ([]key, error) {
	if bytes.HasPrefix(text, []byte("-----BEGIN ")) { // it is not repeated, as it may be a private key
		return nil, errors.New(`parse JWKS: it is in PEM: name the file of the public keys, JSON of the form {"keys": [{"kty": "OKP", ...}]}`)
	}
	var set struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(text, &set); err != nil {
		reason := ""
		if errors.As(err, new(*json.SyntaxError)) {
			reason = ": " + err.Error()
		}
		return nil, errors.New(`parse JWKS: it is not JSON of the form {"keys": [{"kty": "OKP", ...}]}` + reason)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("parse JWKS: it has more than %d keys", maxKeys)
	}
	var all []key
	for i, text := range set.Keys {
		k, err := parseKey(text)
		if err != nil {
			return nil, fmt.Errorf("parse JWKS: key %d: %w", i+1, err)
		}
		if k.public != nil {
			all = append(all, k)
		}
	}
	if all == nil {
		return nil, errNoKeys
	}
	return all, nil
}

// parseKey parses one key. A key that is left out has no public key.
func parseKey(text []byte) (key, error) {
	var kind struct{ Use, KTY, CRV string }
	if err := json.Unmarshal(text, &kind); err != nil || kind.Use != "" && kind.Use != "sig" || !usable(kind.KTY, kind.CRV) {
		return key{}, err
	}
	var k jwk
	if err := json.Unmarshal(text, &k); err != nil {
		return key{}, err
	}
	public, err := k.public()
	return key{id: k.KID, algorithm: k.Alg, public: public}, err
}

// usable reports whether a kind of keys is for signatures that are accepted.
func usable(kind, curve string) bool {
	switch kind {
	case "RSA":
		return true
	case "EC":
		return curves[curve] != nil
	case "OKP":
		return curve == "Ed25519"
	}
	return false
}

// curves are those of the accepted algorithms.
var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

// jwk is a key in JSON, see RFC 7517 and, for its numbers, RFC 7518 and RFC 8037.
type jwk struct {
	KID, Alg, KTY, CRV string
	N, E, X, Y         number
}

// number is an integer or a string of bytes in base64url.
type number []byte

// UnmarshalJSON decodes base64url.
func (n *number) UnmarshalJSON(text []byte) error {
	var encoded string
	if err := json.Unmarshal(text, &encoded); err != nil {
		return err
	}
	b, err := base64.RawURLEncoding.DecodeString(encoded)
	*n = b
	return err
}

func (n number) integer() *big.Int { return new(big.Int).SetBytes(n) }

// public returns the public key of a usable kind.
func (k *jwk) public() (any, error) {
	switch k.KTY {
	case "RSA":
		return k.rsa()
	case "EC":
		return k.ecdsa()
	}
	if len(k.X) != ed25519.PublicKeySize {
		return nil, errors.New("x is not the size of a key of Ed25519")
	}
	return ed25519.PublicKey(k.X), nil
}

func (k *jwk) rsa() (any, error) {
	n, e := k.N.integer(), k.E.integer()
	switch bits := n.BitLen(); {
	case bits < minRSABits || bits > maxRSABits:
		return nil, fmt.Errorf("n has %d bits, and must have %d to %d", bits, minRSABits, maxRSABits)
	case !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 || e.Bit(0) == 0:
		return nil, errors.New("e is no exponent of RSA")
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
}

func (k *jwk) ecdsa() (any, error) {
	curve := curves[k.CRV]
	size := (curve.Params().BitSize + 7) / 8
	if len(k.X) != size || len(k.Y) != size {
		return nil, fmt.Errorf("x and y must have %d bytes", size)
	}
	// The point in the form of SEC 1, section 2.3.3; a point that is not on the curve is an
	// error.
	public, err := ecdsa.ParseUncompressedPublicKey(curve, append(append([]byte{4}, k.X...), k.Y...))
	if err != nil {
		return nil, fmt.Errorf("the point: %w", err)
	}
	return public, nil
}
