package jwtauth

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/limitgate/limitgate/internal/jwks"
)

const (
	// leeway is how far clocks may differ.
	leeway = 30 * time.Second
	// maxToken bounds a token, in bytes: it is decoded before its signature is checked.
	maxToken = 8 << 10
)

// Options configure a Verifier.
type Options struct {
	// Issuer and Audience are the iss and aud that tokens must have.
	Issuer, Audience string
	// TenantClaim is the name of the claim with the tenant, a text.
	TenantClaim string
	// Now returns the time; nil means the clock of this machine.
	Now func() time.Time
}

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	keys        *jwks.Keys
	parser      *jwt.Parser
	tenantClaim string
}

// NewVerifier returns a Verifier of tokens that keys verify.
func NewVerifier(keys *jwks.Keys, o Options) *Verifier {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	parser := jwt.NewParser(jwt.WithValidMethods(jwks.Algorithms), jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(), jwt.WithTimeFunc(now))
	return &Verifier{keys: keys, parser: parser, tenantClaim: o.TenantClaim}
}

// Verify returns the tenant of a token, and the time until which it is valid. It never waits.
// The error is a few words for the client, and contains nothing of the token.
func (v *Verifier) Verify(token string) (tenant string, until time.Time, err error) {
	if len(token) > maxToken {
		return "", until, fmt.Errorf("it has more than %d bytes", maxToken)
	}
	claims := jwt.MapClaims{}
	if _, err := v.parser.ParseWithClaims(token, claims, v.keys.Find); err != nil {
		return "", until, reason(err)
	}
	tenant, ok := claims[v.tenantClaim].(string)
	if !ok || tenant == "" || tenant == "-" {
		return "", until, fmt.Errorf("its claim %q names no tenant", v.tenantClaim)
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
		jwks.ErrNoKey, jwt.ErrTokenSignatureInvalid, jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued,
		jwt.ErrTokenInvalidIssuer, jwt.ErrTokenInvalidAudience, jwt.ErrTokenRequiredClaimMissing, jwt.ErrTokenInvalidClaims,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return jwt.ErrTokenMalformed
}
