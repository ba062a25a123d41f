package users

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/internal/failures"
)

// The reasons why a client is not authenticated.
var (
	// ErrWrong means that the user does not exist or is off, or the password is wrong.
	ErrWrong = errors.New("invalid username-password pair or user is disabled")
	// ErrTooOften means that the client's address has failed too often. Its password is wrong,
	// or was not looked at because that takes long.
	ErrTooOften = errors.New("too many failed attempts from this address")
	// ErrBusy means that too many passwords are being checked.
	ErrBusy = errors.New("too many passwords are being checked")
	// ErrToken means that a token is not valid; the reason follows.
	ErrToken = errors.New("the token is refused")
)

const (
	// maxWaiting bounds the checks of Argon2id that wait for others: each occupies a task of
	// the server.
	maxWaiting = 32
	// maxVerified bounds the passwords that are known to be right, some 1 MB.
	maxVerified = 10_000
)

// Authenticator checks passwords against a Set that can be replaced. It is safe for
// concurrent use.
type Authenticator struct {
	set atomic.Pointer[Set]
	// failures are those of passwords, tokenFailures those of tokens: a fleet whose tokens
	// are refused must not keep people with passwords out.
	failures, tokenFailures *failures.Limit[netip.Addr]
	now                     func() time.Time

	// A fleet that connects again costs one computation of Argon2id for each user: verified
	// has a keyed hash of each password that was right.
	key      [32]byte
	verified *lru.Cache[[sha256.Size]byte, struct{}]

	tokens Tokens // nil if tokens are not accepted

	hashing chan struct{} // holds an element for each computation of Argon2id
	waiting atomic.Int64

	count counts
}

type counts struct{ ok, wrong, tooOften, busy, hashes atomic.Int64 }

// Counts are numbers of attempts to authenticate, by their result, and of computations of
// Argon2id.
type Counts struct{ OK, Wrong, TooOften, Busy, Hashes int64 }

// Tokens checks tokens. It is safe for concurrent use.
type Tokens interface {
	// Verify returns the tenant of a token and the time until which it is valid, without
	// waiting. The error is a few words, without a part of the token.
	Verify(token string) (tenant string, until time.Time, err error)
}

// NewAuthenticator returns an Authenticator. At most half of the processors compute Argon2id
// at a time. With tokens, which may be nil, the user TokenName has a token as password.
func NewAuthenticator(s *Set, tokens Tokens) *Authenticator {
	verified, err := lru.New[[sha256.Size]byte, struct{}](maxVerified)
	if err != nil {
		panic(err) // lru.New fails only for a size that is not positive
	}
	a := &Authenticator{failures: failures.New[netip.Addr](), tokenFailures: failures.New[netip.Addr](), now: time.Now, verified: verified, tokens: tokens, hashing: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	_, _ = rand.Read(a.key[:]) // never fails
	a.set.Store(s)
	return a
}

// Users returns the present Set.
func (a *Authenticator) Users() *Set { return a.set.Load() }

// Replace replaces the Set.
func (a *Authenticator) Replace(s *Set) { a.set.Store(s) }

// Counts returns the numbers of attempts so far.
func (a *Authenticator) Counts() Counts {
	return Counts{OK: a.count.ok.Load(), Wrong: a.count.wrong.Load(), TooOften: a.count.tooOften.Load(), Busy: a.count.busy.Load(), Hashes: a.count.hashes.Load()}
}

// MayWait reports whether Authenticate computes for long for these words, and may wait for
// other computations.
func (a *Authenticator) MayWait(name, given string) bool {
	if a.isToken(name) { // a signature takes some time to check
		return true
	}
	return len(a.set.Load().decoy.passwords) > 0 && !a.matchQuickly(a.lookup(name), given)
}

// lookup returns the user, or the decoy.
func (a *Authenticator) lookup(name string) *User {
	s := a.set.Load()
	if u := s.users[name]; u != nil && u.Enabled {
		return u
	}
	return s.decoy
}

// TakesTokens reports whether the user TokenName has a token as password.
func (a *Authenticator) TakesTokens() bool { return a.tokens != nil }

// isToken reports whether the password of a name is a token.
func (a *Authenticator) isToken(name string) bool { return a.tokens != nil && name == TokenName }

// authenticateToken returns the user of a token.
func (a *Authenticator) authenticateToken(addr netip.Addr, token string) (*User, error) {
	tenant, until, err := a.tokens.Verify(token)
	if err != nil {
		return nil, a.fail(a.tokenFailures, addr, fmt.Errorf("%w: %w", ErrToken, err))
	}
	a.count.ok.Add(1)
	return newTokenUser(tenant, until), nil
}

// Authenticate returns the user of a name and a password. The error is ErrWrong, ErrTooOften,
// ErrBusy, ErrToken or that of ctx. The time of ErrWrong does not depend on whether the user
// exists, as far as the hashes of the file have equal parameters.
func (a *Authenticator) Authenticate(ctx context.Context, addr netip.Addr, name, given string) (*User, error) {
	if a.isToken(name) {
		return a.authenticateToken(addr, given)
	}
	u := a.lookup(name)
	ok := a.matchQuickly(u, given)
	if !ok && len(a.set.Load().decoy.passwords) > 0 {
		var err error
		if ok, err = a.matchSlowly(ctx, addr, u, given); err != nil {
			return nil, err
		}
	}
	// The decoy has no name. Its hashes have no password, but that is not to be relied on.
	if !ok || u.Name == "" {
		return nil, a.fail(a.failures, addr, ErrWrong)
	}
	a.count.ok.Add(1)
	return u, nil
}

// fail counts a failure of an address, and returns err, or ErrTooOften if there were too many
// before.
func (a *Authenticator) fail(of *failures.Limit[netip.Addr], addr netip.Addr, err error) error {
	if of.Exceeded(failures.Network(addr), a.now()) {
		a.count.tooOften.Add(1)
		return ErrTooOften
	}
	a.count.wrong.Add(1)
	of.Add(failures.Network(addr), a.now())
	return err
}

// matchQuickly looks for the password among the secrets of a user, and among the passwords
// that were right before.
func (a *Authenticator) matchQuickly(u *User, given string) (ok bool) {
	if u.NoPassword {
		return true
	}
	sum := sha256.Sum256([]byte(given))
	for _, s := range u.secrets {
		ok = s.match(sum) || ok
	}
	for i := range u.passwords {
		_, known := a.verified.Get(a.digest(u, &u.passwords[i], sum))
		ok = ok || known
	}
	return ok
}

// digest returns the key in verified of a password of a user, whose SHA-256 is given.
func (a *Authenticator) digest(u *User, p *password, given [sha256.Size]byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, a.key[:])
	for _, part := range []string{u.Name, p.text} {
		of := sha256.Sum256([]byte(part))
		_, _ = h.Write(of[:])
	}
	_, _ = h.Write(given[:])
	h.Sum(sum[:0])
	return sum
}

// matchSlowly compares the password with the Argon2id hashes of a user.
func (a *Authenticator) matchSlowly(ctx context.Context, addr netip.Addr, u *User, given string) (ok bool, err error) {
	if a.failures.Exceeded(failures.Network(addr), a.now()) {
		a.count.tooOften.Add(1)
		return false, ErrTooOften
	}
	if err := a.takeTurn(ctx); err != nil {
		return false, err
	}
	defer func() { <-a.hashing }()
	if a.failures.Exceeded(failures.Network(addr), a.now()) { // by those that were checked meanwhile
		a.count.tooOften.Add(1)
		return false, ErrTooOften
	}
	if a.matchQuickly(u, given) { // one of them was the same
		return true, nil
	}
	for i := range u.passwords {
		a.count.hashes.Add(1)
		if p := &u.passwords[i]; p.match(given) {
			a.verified.Add(a.digest(u, p, sha256.Sum256([]byte(given))), struct{}{})
			return true, nil
		}
	}
	// The others take as long as the user with most passwords.
	decoys := a.set.Load().decoy.passwords
	for i := len(u.passwords); i < len(decoys); i++ {
		a.count.hashes.Add(1)
		_ = decoys[i].match(given)
	}
	return false, nil
}

// takeTurn waits until Argon2id may be computed.
func (a *Authenticator) takeTurn(ctx context.Context) error {
	if a.waiting.Add(1) > maxWaiting {
		a.waiting.Add(-1)
		a.count.busy.Add(1)
		return ErrBusy
	}
	defer a.waiting.Add(-1)
	select {
	case a.hashing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
