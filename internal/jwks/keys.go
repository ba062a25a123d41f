package jwks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
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
)

// Algorithms are the accepted ones: asymmetric, so that a public key is never a secret.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// ErrNoKey is returned for a token whose key is not in the JWKS.
var ErrNoKey = errors.New("no key fits the token")

// Options configure Keys.
type Options struct {
	// JWKS is the path or the https URL of the keys.
	JWKS string
	// ReadFile reads a file of at most most bytes.
	ReadFile func(path string, most int) ([]byte, error)
	Log      *slog.Logger
	// Now returns the time; nil means the clock of this machine.
	Now func() time.Time
}

// Keys are the keys of a JWKS. They are safe for concurrent use.
type Keys struct {
	options Options
	client  *http.Client
	present atomic.Pointer[[]key]
	unknown chan struct{} // capacity one: a token named an unknown key
	wanted  chan struct{} // capacity one: Trigger was called
	failed  atomic.Int64
	changes atomic.Int64
}

// Open returns the present keys. If they cannot be read from a URL there are none until Run has
// read them; a file must be readable.
func Open(ctx context.Context, o Options) (*Keys, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keys{options: o, client: newClient(), unknown: make(chan struct{}, 1), wanted: make(chan struct{}, 1)}
	k.present.Store(&[]key{})
	if IsURL(o.JWKS) {
		_ = k.refresh(ctx) // it has logged the error
		return k, nil
	}
	if err := k.load(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", o.JWKS, err)
	}
	return k, nil
}

// Trigger makes Run read the keys again at once. It never blocks.
func (k *Keys) Trigger() {
	select {
	case k.wanted <- struct{}{}:
	default:
	}
}

// Run reads the keys again from time to time, until ctx ends.
func (k *Keys) Run(ctx context.Context) error {
	every := time.NewTicker(refreshPause)
	defer every.Stop()
	last, wanted := k.options.Now(), false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.unknown:
			wanted = true
		case <-k.wanted:
			_ = k.refresh(ctx) // it has logged the error
			last, wanted = k.options.Now(), false
		case <-every.C:
			now := k.options.Now()
			if !wanted && k.Len() > 0 && now.Sub(last) < refreshEvery {
				continue
			}
			_ = k.refresh(ctx) // it has logged the error
			last, wanted = now, false
		}
	}
}

// refresh reads the keys, and logs an error. The earlier ones stay in force after one.
func (k *Keys) refresh(ctx context.Context) error {
	err := k.load(ctx)
	if err != nil {
		k.failed.Add(1)
		if n := k.Len(); n > 0 {
			k.options.Log.Error("failed to read the keys of tokens, using the earlier ones", "jwks", k.options.JWKS, "keys", n, "error", err)
		} else {
			k.options.Log.Error("failed to read the keys of tokens: no token is accepted", "jwks", k.options.JWKS, "error", err)
		}
	}
	return err
}

// load reads the keys. The earlier ones stay in force after an error.
func (k *Keys) load(ctx context.Context) error {
	text, err := k.read(ctx)
	if err != nil {
		return err
	}
	keys, err := parseKeys(text)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(*k.present.Load(), keys, key.equal) {
		k.present.Store(&keys)
		k.changes.Add(1)
		k.options.Log.Info("keys of tokens loaded", "jwks", k.options.JWKS, "keys", len(keys))
	}
	return nil
}

// Failures returns how many reads of the keys failed.
func (k *Keys) Failures() int64 { return k.failed.Load() }

// Generation changes with the keys: a token that was verified under an earlier one may have no key
// any more.
func (k *Keys) Generation() int64 { return k.changes.Load() }

// Len returns the number of keys in force.
func (k *Keys) Len() int { return len(*k.present.Load()) }

// Find returns the key that a token names, or ErrNoKey. A token without a name has the only key.
// It never waits.
func (k *Keys) Find(token *jwt.Token) (any, error) {
	keys := *k.present.Load()
	id, named := token.Header["kid"].(string)
	for _, key := range keys {
		// One of several keys without a name, or for several names, cannot be told apart.
		only := len(keys) == 1 && (!named || key.id == "")
		if (only || named && key.id == id) && (key.algorithm == "" || key.algorithm == token.Method.Alg()) {
			return key.public, nil
		}
	}
	if named {
		select {
		case k.unknown <- struct{}{}:
		default:
		}
	}
	return nil, ErrNoKey
}
