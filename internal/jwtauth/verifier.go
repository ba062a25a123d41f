package jwtauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// refreshEvery is how often the keys are read again, and refreshPause the least time
	// between two reads because a token names an unknown key: tokens of strangers must not
	// make the proxy ask for keys all the time.
	refreshEvery = 5 * time.Minute
	refreshPause = 10 * time.Second
	// leeway is how far clocks may differ.
	leeway = 30 * time.Second
	// maxToken bounds a token, in bytes: it is decoded before its signature is checked.
	maxToken = 8 << 10
)

// algorithms are the accepted ones: asymmetric, so that a public key is never a secret.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Options configure a Verifier.
type Options struct {
	// JWKS is the path or the https URL of the keys.
	JWKS string
	// Issuer and Audience are the iss and aud that tokens must have.
	Issuer, Audience string
	// TenantClaim is the name of the claim with the tenant, a text.
	TenantClaim string
	// ReadFile reads a file of at most most bytes.
	ReadFile func(path string, most int) ([]byte, error)
	Log      *slog.Logger
	// Now returns the time; nil means the clock of this machine.
	Now func() time.Time
}

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	options Options
	client  *http.Client
	parser  *jwt.Parser
	keys    atomic.Pointer[[]key]
	unknown chan struct{} // capacity one: a token named an unknown key
	failed  atomic.Int64
}

// Open returns a Verifier with the present keys. If they cannot be read from a URL, it
// accepts no token until Run has read them; a file must be readable.
func Open(ctx context.Context, o Options) (*Verifier, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	v := &Verifier{options: o, client: newClient(), unknown: make(chan struct{}, 1)}
	v.parser = jwt.NewParser(jwt.WithValidMethods(algorithms), jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(), jwt.WithTimeFunc(o.Now))
	v.keys.Store(&[]key{})
	if err := v.refresh(ctx); err != nil && !isURL(o.JWKS) {
		return nil, err
	}
	return v, nil
}

// Run reads the keys again from time to time, until ctx ends.
func (v *Verifier) Run(ctx context.Context) error {
	every := time.NewTicker(refreshPause)
	defer every.Stop()
	last, wanted := v.options.Now(), false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-v.unknown:
			wanted = true
		case <-every.C:
			now := v.options.Now()
			if !wanted && len(*v.keys.Load()) > 0 && now.Sub(last) < refreshEvery {
				continue
			}
			_ = v.refresh(ctx) // it has logged the error
			last, wanted = now, false
		}
	}
}

// refresh reads the keys. The earlier ones stay in force after an error.
func (v *Verifier) refresh(ctx context.Context) error {
	text, err := v.read(ctx)
	var keys []key
	if err == nil {
		keys, err = parseKeys(text)
	}
	if err != nil {
		v.failed.Add(1)
		v.options.Log.Error("failed to read the keys of tokens, using the earlier ones", "jwks", v.options.JWKS, "keys", len(*v.keys.Load()), "error", err)
		return err
	}
	v.keys.Store(&keys)
	return nil
}

// Failures returns how many reads of the keys failed.
func (v *Verifier) Failures() int64 { return v.failed.Load() }

// Keys returns the number of keys in force.
func (v *Verifier) Keys() int { return len(*v.keys.Load()) }

// errKey is returned for a token whose key is not in the JWKS.
var errKey = errors.New("no key fits the token")

// Verify returns the tenant of a token, and the time until which it is valid. It never waits.
// The error is a few words for the client, and contains nothing of the token.
func (v *Verifier) Verify(token string) (tenant string, until time.Time, err error) {
	if len(token) > maxToken {
		return "", until, fmt.Errorf("it has more than %d bytes", maxToken)
	}
	claims := jwt.MapClaims{}
	if _, err := v.parser.ParseWithClaims(token, claims, v.keyOf); err != nil {
		return "", until, reason(err)
	}
	tenant, ok := claims[v.options.TenantClaim].(string)
	if !ok || tenant == "" || tenant == "-" {
		return "", until, fmt.Errorf("its claim %q names no tenant", v.options.TenantClaim)
	}
	expires, err := claims.GetExpirationTime()
	if err != nil {
		return "", until, reason(err)
	}
	return tenant, expires.Add(leeway), nil
}

// reason returns the words for an error of the parser, whose text may have parts of the token.
// Only tokens with a valid signature are refused for their claims.
func reason(err error) error {
	for _, known := range []error{
		errKey, jwt.ErrTokenSignatureInvalid, jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued,
		jwt.ErrTokenInvalidIssuer, jwt.ErrTokenInvalidAudience, jwt.ErrTokenRequiredClaimMissing, jwt.ErrTokenInvalidClaims,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return jwt.ErrTokenMalformed
}

// keyOf returns the key that a token names. A token without a name has the only key.
func (v *Verifier) keyOf(token *jwt.Token) (any, error) {
	keys := *v.keys.Load()
	id, named := token.Header["kid"].(string)
	for _, k := range keys {
		// One of several keys without a name, or for several names, cannot be told apart.
		only := len(keys) == 1 && (!named || k.id == "")
		if (only || named && k.id == id) && (k.algorithm == "" || k.algorithm == token.Method.Alg()) {
			return k.public, nil
		}
	}
	if named {
		select {
		case v.unknown <- struct{}{}:
		default:
		}
	}
	return nil, errKey
}
