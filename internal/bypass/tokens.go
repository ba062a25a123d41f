package bypass

import (
	"crypto/sha256"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/failures"
	"github.com/limitgate/limitgate/internal/jwks"
	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/limit"
)

const (
	// maxToken bounds a token, in bytes: it is decoded before its signature is checked.
	maxToken = 2 << 10
	// maxVerified bounds the tokens whose signature is known to be right, some 4 MB at most:
	// only owners of a key make tokens.
	maxVerified = 1000
	// maxBuckets bounds the tokens whose use is counted against their rate, as many as are
	// known. The backstop forgets some before, where their hashes are uneven.
	maxBuckets = 1000
)

// Use is the use of a token by a request.
type Use struct {
	Token string
	// User and Addr are the user and the address of the connection. Wrong tokens of others do
	// not keep those of a user at a host from being checked.
	User string
	Addr string // IP:PORT
	// Tenant, Op and Cost are those of the request.
	Tenant, Op string
	Cost       int64
}

// Options configure Tokens.
type Options struct {
	// Instances returns how many proxies share the rate of a token. It is called on any
	// goroutine; nil means one.
	Instances func() int
	Log       *slog.Logger
	// Now returns the time; nil means the clock of this machine.
	Now func() time.Time
}

// Tokens are the tokens that owners of a key have signed. They are safe for concurrent use.
type Tokens struct {
	keys    *jwks.Keys
	log     *slog.Logger
	now     func() time.Time
	parser  *jwt.Parser
	revoked atomic.Pointer[map[string]struct{}] // by id

	// A signature takes longer to check than many decisions. Tokens that are used again are
	// known by their hash, and clients may send few tokens with a wrong signature.
	verified *lru.Cache[[sha256.Size]byte, *token]
	failed   *failures.Limit[client]

	rates   *backstop.Backstop // of tokens
	lines   chan line
	omitted atomic.Int64 // lines that did not fit
	count   [numOutcomes]atomic.Int64
}

// client is a user at a host.
type client struct {
	user string
	addr netip.Addr
}

// token is a token with a valid signature.
type token struct {
	Claims
	generation int64 // of the keys that verified it
	problem    error // the claims cannot be used
	limit      *limit.Limit
	bucket     []byte                            // the name of its bucket
	refusals   [numOutcomes]logthrottle.Throttle // of their lines
}

// New returns the tokens that keys verify. Their uses are logged while Run runs.
func New(keys *jwks.Keys, o Options) *Tokens {
	verified, err := lru.New[[sha256.Size]byte, *token](maxVerified)
	if err != nil {
		panic(err) // lru.New fails only for a size that is not positive
	}
	t := &Tokens{
		keys: keys, log: o.Log, now: o.Now, verified: verified, failed: failures.New[client](),
		// The claims are checked at each use: a token with a valid signature is known until
		// its end, and after it.
		parser: jwt.NewParser(jwt.WithValidMethods(jwks.Algorithms), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding()),
		rates:  backstop.New(backstop.Options{Instances: o.Instances, Buckets: maxBuckets}),
		lines:  make(chan line, maxLines),
	}
	if t.now == nil {
		t.now = time.Now
	}
	t.revoked.Store(&map[string]struct{}{})
	return t
}

// SetRevoked replaces the ids of the tokens that are revoked.
func (t *Tokens) SetRevoked(ids map[string]struct{}) { t.revoked.Store(&ids) }

// Count returns how many uses had an outcome.
func (t *Tokens) Count(o Outcome) int64 { return t.count[o].Load() }

// Admit reports whether a token lets a request pass the limits, and takes the request's cost of
// the token's own limit. It counts and logs the use. It never waits.
func (t *Tokens) Admit(u Use) bool {
	now := t.now()
	known, outcome := t.verify(&u, now)
	if known != nil {
		outcome = t.decide(known, &u, now)
		t.record(known, &u, outcome)
	}
	t.count[outcome].Add(1)
	return outcome == Used
}

// decide decides the use of a token with a valid signature.
func (t *Tokens) decide(known *token, u *Use, now time.Time) Outcome {
	_, revoked := (*t.revoked.Load())[known.ID]
	switch {
	case known.problem != nil:
		return Invalid
	case revoked:
		return Revoked
	case now.After(known.ExpiresAt.Add(leeway)):
		return Expired
	case known.NotBefore != nil && now.Add(leeway).Before(known.NotBefore.Time):
		return TooEarly
	case known.ExpiresAt.After(now.Add(MaxLife)):
		return Invalid
	case known.Tenant != "" && known.Tenant != u.Tenant:
		return OtherTenant
	}
	of := [1]limit.Item{{Limit: known.limit, Name: known.bucket, KeyLen: len(known.bucket), TagLen: len(known.bucket), Cost: u.Cost}}
	t.rates.Share(limit.DecisionTime{Now: now.UnixMicro(), Start: now}, of[:], true)
	if !of[0].Allowed {
		return OverRate
	}
	return Used
}

// verify returns the token if its signature is valid, or the outcome. A token that was known under
// earlier keys is checked whatever else the client has sent: there are few of those.
func (t *Tokens) verify(u *Use, now time.Time) (known *token, refusal Outcome) {
	if !isToken(u.Token) {
		return nil, Invalid
	}
	sum, generation := sha256.Sum256([]byte(u.Token)), t.keys.Generation()
	known, ok := t.verified.Get(sum)
	if ok && known.generation == generation {
		return known, 0
	}
	from := client{user: u.User}
	if addr, err := netip.ParseAddrPort(u.Addr); err == nil {
		from.addr = failures.Network(addr.Addr())
	}
	if !ok && t.failed.Exceeded(from, now) {
		return nil, Unchecked
	}
	if known = t.parse(u.Token); known == nil {
		t.verified.Remove(sum)
		t.failed.Add(from, now)
		return nil, Invalid
	}
	known.generation = generation
	t.verified.Add(sum, known)
	return known, 0
}

// isToken reports whether a text has the characters of a token only. The decoder skips ends of
// lines, so that a token would have any number of spellings.
func isToken(text string) bool {
	if len(text) > maxToken {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// parse returns a token, or nil unless a key has signed it.
func (t *Tokens) parse(text string) *token {
	claims := jwt.MapClaims{}
	if _, err := t.parser.ParseWithClaims(text, claims, t.keys.Find); err != nil {
		return nil
	}
	known := new(token)
	for i := range known.refusals {
		known.refusals[i].Period, known.refusals[i].Now = refusalEvery, t.now
	}
	if known.Claims, known.problem = claimsOf(claims); known.problem == nil {
		known.problem = known.Check()
	}
	if known.problem == nil {
		known.limit, known.problem = known.Claims.limit()
		known.bucket = []byte(limit.InlineName(known.ID))
	}
	return known
}
