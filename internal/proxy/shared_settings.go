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

// Proxies of one store have to have some settings alike, and no decision shows that they differ. So each proxy claims its own in the
// store, and one that finds another there logs it.

const (
	// claimPause is the interval at which a proxy claims its settings, and claimTTL how long a claim lasts.
	claimPause = 20 * time.Second
	claimTTL   = 3 * claimPause
	// claimLooks is how often in a row another setting has to be there: one look may come between a secret and its claim.
	claimLooks = 2
	// limitsLooks is the same of limits, three minutes: proxies read a change one behind the other, a restart of all takes its time, and a
	// claim of former limits lasts claimTTL of these.
	limitsLooks = 10
	// claimQuiet is the shortest time between two lines about a setting.
	claimQuiet = time.Hour
)

// The lines about another setting.
const (
	hashingLine  = "another proxy of this store hashes addresses in another way, so that one caller has several buckets: give all the same secret and prefixes (--privacy-ip-secret-file, --privacy-ipv4-prefix, --privacy-ipv6-prefix)"
	limitsLine   = "another proxy of this store has had other limits for two minutes or more, and both count in the same buckets: give all the same limits, or a store of their own"
	countingLine = "another proxy of this store has another --instances, so that their shares are not equal while the store is down: give all the same"
)

// claimer is the store, see cluster.Store.Claim.
type claimer interface {
	Claim(ctx context.Context, key, value string, ttl time.Duration) (held string, err error)
}

// sharedSetting is a setting that the proxies of a store have to have alike.
type sharedSetting struct {
	key     string
	here    func() string                        // the setting of this proxy; "" while it has no effect
	accepts func(other string) bool              // another setting that does no harm; nil if there is none
	warn    func(log *slog.Logger, attrs ...any) // logs that there is another setting

	looks int // in a row at which another setting has to be there

	quiet logthrottle.Throttle
	last  string // here, at the last look
	other int    // looks in a row at which another setting was there
}

// hashing is the way in which addresses are hashed: proxies that differ have several buckets for one caller.
func hashing(hasher *limit.AddrHasher, limits func() *limit.Set) *sharedSetting {
	return &sharedSetting{
		key: "lg:hashing",
		here: func() string {
			if !slices.ContainsFunc(limits().Limits, (*limit.Limit).CountsHashes) {
				return ""
			}
			return hasher.Fingerprint()
		},
		accepts: func(other string) bool { // the other proxies get the new secret, too
			previous := hasher.Previous()
			return previous != nil && other == previous.Fingerprint()
		},
		warn:  func(log *slog.Logger, attrs ...any) { log.Warn(hashingLine, attrs...) },
		looks: claimLooks,
		quiet: logthrottle.Throttle{Period: claimQuiet},
	}
}

// counting is the source of the number of proxies: those that differ have shares that are not equal while the store is down.
func counting(source string) *sharedSetting {
	return &sharedSetting{
		key:   "lg:instances:setting",
		here:  func() string { return source },
		warn:  func(log *slog.Logger, attrs ...any) { log.Warn(countingLine, attrs...) },
		looks: claimLooks,
		quiet: logthrottle.Throttle{Period: claimQuiet},
	}
}

// sameLimits is the version of the limits: proxies that differ count in the same buckets by different limits.
func sameLimits(limits func() *limit.Set) *sharedSetting {
	return &sharedSetting{
		key:   "lg:limits:version",
		here:  func() string { return limits().Version },
		warn:  func(log *slog.Logger, attrs ...any) { log.Warn(limitsLine, attrs...) },
		looks: limitsLooks,
		quiet: logthrottle.Throttle{Period: claimQuiet},
	}
}

// watchSettings compares the settings from the first contact with the store on.
func (p *Proxy) watchSettings(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.cluster.Reached():
	}
	settings := []*sharedSetting{hashing(p.hasher, p.limits.Set), counting(p.settings.Instances.String()), sameLimits(p.limits.Set)}
	for {
		for _, s := range settings {
			s.look(ctx, p.cluster, p.log)
		}
		if !run.Sleep(ctx, claimPause) {
			return nil
		}
	}
}

// look claims a setting once. A failure of the store is logged elsewhere, and a user of the store without the right to the key compares
// nothing.
func (s *sharedSetting) look(ctx context.Context, store claimer, log *slog.Logger) {
	here := s.here()
	if here != s.last {
		s.last, s.other = here, 0
	}
	if here == "" {
		return
	}
	asking, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	held, err := store.Claim(asking, s.key, here, claimTTL)
	if err != nil || held == here || s.accepts != nil && s.accepts(held) {
		s.other = 0
		return
	}
	if s.other++; s.other >= s.looks && s.quiet.Allow() {
		s.warn(log, "here", here, "there", limit.Shorten(held))
	}
}
