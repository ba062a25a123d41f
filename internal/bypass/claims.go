package bypass

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// Audience is the aud of tokens: a token for another purpose is none.
	Audience = "limitgate-bypass"
	// MaxLife bounds the time that a token is valid from now on.
	MaxLife = 366 * 24 * time.Hour
	// leeway is how far clocks may differ.
	leeway = 30 * time.Second
	// maxID bounds the id of a token, in bytes.
	maxID = 64
	// maxNumber bounds the numbers of claims: instants until the year 36812, and units.
	maxNumber = 1 << 40
)

// Claims are the claims of a token.
type Claims struct {
	jwt.RegisteredClaims // the id (jti), the end (exp), the begin (nbf, or none) and the audience
	// Name describes the purpose of the token to readers of the log.
	Name string `json:"name"`
	// Rate is the most units that the token admits, as in limits: 100/s. Burst is how many of
	// them at once; 0 means those of one period.
	Rate  string `json:"rate"`
	Burst int64  `json:"burst,omitempty"`
	// Tenant is the only tenant that the token is for; empty means any.
	Tenant string `json:"tenant,omitempty"`
}

// CheckID returns an error unless a text can be the id of a token. The error begins with "must be".
func CheckID(id string) error {
	if !isID(id) {
		return fmt.Errorf("must be an id of 1 to %d letters, digits, '-', '_', '.' and ':'", maxID)
	}
	return nil
}

// Check returns an error that names a claim that is missing or wrong, whatever the time is.
func (c *Claims) Check() error {
	switch _, err := c.limit(); {
	case !slices.Contains(c.Audience, Audience):
		return fmt.Errorf("aud must be %s", Audience)
	case CheckID(c.ID) != nil:
		return fmt.Errorf("jti %w", CheckID(c.ID))
	case limit.CheckName(c.Name) != nil:
		return fmt.Errorf("name must describe the token in 1 to %d bytes", limit.MaxNameBytes)
	case c.ExpiresAt == nil:
		return errors.New("exp must be the end of the token")
	case c.Tenant == "-", c.Tenant != "" && limit.CheckName(c.Tenant) != nil:
		return errors.New("tenant must be the name of a tenant")
	case err != nil:
		return err
	}
	return nil
}

// errType is returned for a claim that is not of the type that it must have.
var errType = errors.New("is of another type")

// claimsOf returns the claims of a token whose signature is valid. Names are compared exactly.
func claimsOf(m jwt.MapClaims) (c Claims, err error) {
	text := func(name string, into *string) {
		value, ok := m[name].(string)
		if !ok && m[name] != nil {
			err = errors.Join(err, fmt.Errorf("%s %w", name, errType))
		}
		*into = value
	}
	number := func(name string) (n int64, ok bool) {
		value, ok := m[name].(float64)
		if !ok && m[name] != nil || ok && (value < 0 || value > maxNumber) {
			err = errors.Join(err, fmt.Errorf("%s %w", name, errType))
			return 0, false
		}
		return int64(value), ok
	}
	text("jti", &c.ID)
	text("name", &c.Name)
	text("rate", &c.Rate)
	text("tenant", &c.Tenant)
	c.Burst, _ = number("burst")
	if seconds, ok := number("exp"); ok {
		c.ExpiresAt = jwt.NewNumericDate(time.Unix(seconds, 0))
	}
	if seconds, ok := number("nbf"); ok {
		c.NotBefore = jwt.NewNumericDate(time.Unix(seconds, 0))
	}
	audience, wrong := m.GetAudience()
	c.Audience = audience
	return c, errors.Join(err, wrong)
}

// isID reports whether an id can be written in a line of a log and of a list.
func isID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' && c != ':' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// limit returns the limit of the token itself.
func (c *Claims) limit() (*limit.Limit, error) {
	r, err := bucket.ParseRate(c.Rate)
	switch {
	case err != nil:
		return nil, fmt.Errorf("rate: %w", err)
	case r.Calendar != 0:
		return nil, errors.New("rate: the period is not a calendar's")
	case c.Burst < 0:
		return nil, fmt.Errorf("burst must be 1 to %d units, or absent", int64(bucket.MaxCapacity))
	}
	capacity := c.Burst
	if capacity == 0 {
		capacity = r.Count
	}
	l, err := limit.NewInlineLimit(r.Count, r.Period, capacity)
	if err != nil {
		return nil, fmt.Errorf("rate: %w", err)
	}
	return l, nil
}

// Sign returns a token with the claims, signed by the key of an id in the JWKS.
func Sign(key ed25519.PrivateKey, id string, c *Claims) (string, error) {
	c.Audience = jwt.ClaimStrings{Audience}
	if err := c.Check(); err != nil {
		return "", err
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	token.Header["kid"] = id
	text, err := token.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	if len(text) > maxToken {
		return "", fmt.Errorf("the token has %d bytes, and %d at most are accepted: shorten its name or tenant", len(text), maxToken)
	}
	return text, nil
}
