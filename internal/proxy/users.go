package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/jwtauth"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/metrics"
)

// clientUsers are the users of clients: those of a file, and those with tokens.
type clientUsers struct {
	settings *config.Settings
	log      *slog.Logger
	auth     *users.Authenticator
	keys     *tokenKeys      // nil without tokens
	tokens   users.Tokens    // nil without tokens
	watcher  *config.Watcher // nil without a file
	// replace receives the users when the file has changed. It is set before watcher runs.
	replace func(*users.Set)

	mu       sync.Mutex // guards the fields below, and orders reloads
	stale    bool       // the present file is not in use
	rejected int64      // files that could not be used
}

// openUsers reads the users and the keys of the settings. If clients need not authenticate,
// it returns nil.
func openUsers(ctx context.Context, s *config.Settings, log *slog.Logger) (*clientUsers, error) {
	if !s.NeedsAuth() {
		if !s.LocalOnly() && s.TLSClientCA == "" {
			log.Warn("any client that reaches the address may spend and reset the quota of every tenant: set --users")
		}
		return nil, nil
	}
	f := &clientUsers{settings: s, log: log}
	if s.Users != "" {
		f.watcher = config.NewWatcher(s.Users, func() { _ = f.reload() })
	}
	set, err := f.read()
	if err != nil {
		return nil, err
	}
	if s.JWTKeys != "" {
		if f.keys, err = openKeys(ctx, s.JWTKeys, log); err != nil {
			return nil, err
		}
		f.tokens = jwtauth.NewVerifier(f.keys.Keys, jwtauth.Options{Issuer: s.JWTIssuer, Audience: s.JWTAudience, TenantClaim: s.JWTTenantClaim})
	}
	f.auth = users.NewAuthenticator(set, f.tokens)
	if s.TLSCert == "" && !s.LocalOnly() {
		log.Warn("passwords of clients cross the network unencrypted: set --tls-cert and --tls-key")
	}
	return f, nil
}

// parts returns what runs beside the server.
func (f *clientUsers) parts() (all []run.Part) {
	if f.watcher != nil {
		all = append(all, f.watcher.Run)
	}
	if f.keys != nil {
		all = append(all, f.keys.parts...)
	}
	return all
}

// trigger makes the files be read again.
func (f *clientUsers) trigger() {
	if f.watcher != nil {
		f.watcher.Trigger()
	}
	if f.keys != nil {
		f.keys.Trigger()
	}
}

// errNoUsers is returned for a file without users, which may be about to be written.
var errNoUsers = errors.New("there is no user in it: write a line for each, such as user acme on #HASH ~acme +@check; limitgate hash-password makes a hash")

// errTokenName is returned for a file with a user that clients with tokens have the name of.
var errTokenName = errors.New("user jwt stands for clients with tokens: give the user another name")

// read reads the file. Without one there are no users.
func (f *clientUsers) read() (*users.Set, error) {
	if f.settings.Users == "" {
		return users.Parse(nil)
	}
	content, err := config.ReadFile(f.settings.Users, users.MaxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	set, err := users.Parse(content)
	if err == nil {
		err = f.check(set)
	} else if kind, _ := config.KindOf(content); kind != "" {
		return nil, fmt.Errorf("read users: %s is %s: a file of users has a line for each, such as user acme on #HASH ~acme +@check", config.Quote(f.settings.Users), kind)
	}
	if err != nil {
		return nil, fmt.Errorf("read users: %w", users.Placed(f.settings.Users, err))
	}
	if incomplete := set.Incomplete(); len(incomplete) > 0 {
		f.log.Warn("users can do next to nothing, as their lines lack a rule", "number", len(incomplete), "rules", strings.Join(incomplete[:min(len(incomplete), 10)], ", "), "example", "user acme on #HASH ~acme +@check")
	}
	return set, nil
}

// check checks the users beside the settings.
func (f *clientUsers) check(set *users.Set) error {
	byCertificate, open := set.NeedsCertificates(), set.Open()
	switch {
	case len(set.All()) == 0:
		return errNoUsers
	case f.settings.JWTKeys != "" && set.User(users.TokenName) != nil:
		return errTokenName
	case byCertificate != nil && f.settings.TLSClientCA == "":
		return fmt.Errorf("user %s is known by a certificate, and clients show none: set --tls-client-ca", byCertificate.Name)
	case open != nil && f.settings.IsOpen():
		return fmt.Errorf("user %s needs no password, so anybody on the network could be it: give it a password, listen on 127.0.0.1, or say --unsafe-open", open.Name)
	}
	return nil
}

// reload reads the file again, and keeps the present users if it cannot be used.
func (f *clientUsers) reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	set, err := f.read()
	f.stale = err != nil
	if err != nil {
		f.rejected++
		f.log.Error("failed to read the users, using the earlier ones", "error", err)
		return err
	}
	f.replace(set)
	f.log.Info("users loaded", "users", len(set.All()))
	return nil
}

// status returns how many files could not be used, and whether the present one is such.
func (f *clientUsers) status() (rejected int64, stale bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rejected, f.stale
}

// registerMetrics registers the metrics of users, which are read at each scrape.
func (f *clientUsers) registerMetrics(r *prometheus.Registry) {
	const name, help = "limitgate_auth_total", "Attempts of clients to authenticate, by result."
	metrics.LabelledCounter(r, name, help, "result", map[string]func() int64{
		"ok":        func() int64 { return f.auth.Counts().OK },
		"wrong":     func() int64 { return f.auth.Counts().Wrong },
		"too_often": func() int64 { return f.auth.Counts().TooOften },
		"busy":      func() int64 { return f.auth.Counts().Busy },
	})
	metrics.Counter(r, "limitgate_auth_hashes_total", "Computations of Argon2id, of some ten milliseconds each.", func() int64 { return f.auth.Counts().Hashes })
	if f.keys != nil {
		metrics.Gauge(r, "limitgate_jwt_keys", "Keys of tokens in force.", func() float64 { return float64(f.keys.Len()) })
		metrics.Counter(r, "limitgate_jwt_keys_failures_total", "Times the keys of tokens could not be read.", f.keys.Failures)
	}
	metrics.Gauge(r, "limitgate_users_stale", "1 while a newer file of users could not be loaded.", func() float64 {
		if _, stale := f.status(); stale {
			return 1
		}
		return 0
	})
	metrics.Counter(r, "limitgate_users_rejected_total", "Files of users that could not be loaded.", func() int64 {
		rejected, _ := f.status()
		return rejected
	})
}
