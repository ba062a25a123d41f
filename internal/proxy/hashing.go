package proxy

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
)

// Proxies of one store that hash addresses in different ways have several buckets for one caller, and no decision shows that. So each
// proxy claims the way it hashes in the store, and one that finds another way there logs it.

const (
	hashingKey = "lg:hashing"
	// hashingPause is the interval at which a proxy claims its way, and hashingTTL how long a claim lasts.
	hashingPause = 20 * time.Second
	hashingTTL   = 3 * hashingPause
	// hashingLooks is how often in a row another way has to be there: one look may come between a secret and its claim.
	hashingLooks = 2
	// hashingQuiet is the shortest time between two lines.
	hashingQuiet = time.Hour
)

// claimer is the store, see cluster.Store.Claim.
type claimer interface {
	Claim(ctx context.Context, key, value string, ttl time.Duration) (held string, err error)
}

// hashingWatch compares the way in which addresses are hashed here with that of the other proxies of a store.
type hashingWatch struct {
	hasher *limit.AddrHasher
	store  claimer
	limits func() *limit.Set
	log    *slog.Logger

	quiet logthrottle.Throttle
	other int // looks in a row at which another way was there
}

// watchHashing compares from the first contact with the store on.
func (p *Proxy) watchHashing(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.cluster.Reached():
	}
	w := hashingWatch{hasher: p.hasher, store: p.cluster, limits: p.limits.Set, log: p.log, quiet: logthrottle.Throttle{Period: hashingQuiet}}
	for {
		w.look(ctx)
		if !run.Sleep(ctx, hashingPause) {
			return nil
		}
	}
}

// look claims the way once. A failure of the store is logged elsewhere.
func (w *hashingWatch) look(ctx context.Context) {
	if !slices.ContainsFunc(w.limits().Limits, (*limit.Limit).CountsHashes) {
		return
	}
	asking, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	here := w.hasher.Fingerprint()
	held, err := w.store.Claim(asking, hashingKey, here, hashingTTL)
	previous := w.hasher.Previous()
	if err != nil || held == here || previous != nil && held == previous.Fingerprint() { // the other proxies get the new secret, too
		w.other = 0
		return
	}
	if w.other++; w.other >= hashingLooks && w.quiet.Allow() {
		w.log.Warn("another proxy of this store hashes addresses in another way, so that one caller has several buckets: give all the same secret and prefixes (--privacy-ip-secret-file, --privacy-ipv4-prefix, --privacy-ipv6-prefix)",
			"here", here, "there", limit.Shorten(held))
	}
}
