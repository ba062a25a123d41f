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
	// issuer and audience are what tokens must have.
	issuer, audience string
}

// NewVerifier returns a Verifier of tokens that keys verify.
func NewVerifier(keys *jwks.Keys, o Options) *Verifier {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	parser := jwt.NewParser(jwt.WithValidMethods(jwks.Algorithms), jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(), jwt.WithTimeFunc(now))
	return &Verifier{keys: keys, parser: parser, tenantClaim: o.TenantClaim, issuer: o.Issuer, audience: o.Audience}
}

// Verify returns the tenant of a token, and the time until which it is valid. It never waits.
// The error is a few words for the client, and contains nothing of the token but the beginning of the id of
// a key that is not known.
func (v *Verifier) Verify(token string) (tenant string, until time.Time, err error) {
	if len(token) > maxToken {
		return "", until, fmt.Errorf("it has more than %d bytes", maxToken)
	}
	claims := jwt.MapClaims{}
	if t, err := v.parser.ParseWithClaims(token, claims, v.keys.Find); err != nil {
		return "", until, v.reason(err, t, claims)
	}
	claim, has := claims[v.tenantClaim]
	tenant, isText := claim.(string)
	switch {
	case !has:
		return "", until, fmt.Errorf("it has no claim %q, which names the tenant", v.tenantClaim)
	case !isText:
		return "", until, fmt.Errorf("its claim %q is no text: the issuer has to write the tenant as one", v.tenantClaim)
	case tenant == "" || tenant == "-":
		return "", until, fmt.Errorf("its claim %q names no tenant", v.tenantClaim)
	}
	expires, err := claims.GetExpirationTime()
	if err != nil {
		return "", until, v.reason(err, nil, claims)
	}
	return tenant, expires.Add(leeway), nil
}

// reason returns the words for an error of the parser, whose text may have parts of the token.
// Only tokens with a valid signature are refused for their claims.
func (v *Verifier) reason(err error, t *jwt.Token, claims jwt.MapClaims) error {
	switch {
	case errors.Is(err, jwks.ErrNoKey) && t != nil:
		id, _ := t.Header["kid"].(string)
		if id == "" {
			return fmt.Errorf("%w: it has no kid", jwks.ErrNoKey)
		}
		return fmt.Errorf("%w: its kid is %.64q", jwks.ErrNoKey, id)
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		for _, name := range []string{"exp", "iss", "aud"} {
			if _, there := claims[name]; !there {
				return fmt.Errorf("its claim %q is missing", name)
			}
		}
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return fmt.Errorf("its claim \"iss\" is not %q", v.issuer)
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return fmt.Errorf("its claim \"aud\" has no %q", v.audience)
	}
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
