package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/users"
	"github.com/limitgate/limitgate/metrics"
)

// usersFile supplies the users of a file.
type usersFile struct {
	settings *config.Settings
	log      *slog.Logger
	auth     *users.Authenticator
	watcher  *config.Watcher
	// replace receives the users when the file has changed. It is set before watcher runs.
	replace func(*users.Set)

	mu       sync.Mutex // guards the fields below, and orders reloads
	stale    bool       // the present file is not in use
	rejected int64      // files that could not be used
}

// openUsers reads the file of users of the settings. Without one it returns nil.
func openUsers(s *config.Settings, log *slog.Logger) (*usersFile, error) {
	if s.Users == "" {
		return nil, nil
	}
	f := &usersFile{settings: s, log: log}
	f.watcher = config.NewWatcher(s.Users, func() { _ = f.reload() })
	set, err := f.read()
	if err != nil {
		return nil, err
	}
	f.auth = users.NewAuthenticator(set)
	if s.TLSCert == "" && !s.LocalOnly() {
		log.Warn("passwords of clients cross the network unencrypted: set --tls-cert and --tls-key")
	}
	return f, nil
}

// errOpen is returned for a file whose default user lets anybody in.
var errOpen = errors.New("the default user needs no password, so anybody on the network could use it: give it a password, listen on 127.0.0.1, or say --unsafe-open")

// read reads the file.
func (f *usersFile) read() (*users.Set, error) {
	content, err := config.ReadFile(f.settings.Users, users.MaxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	set, err := users.Parse(content)
	if err == nil && set.Default() != nil && f.settings.IsOpen() {
		err = errOpen
	}
	if err != nil {
		return nil, fmt.Errorf("read users of %s: %w", f.settings.Users, err)
	}
	return set, nil
}

// reload reads the file again, and keeps the present users if it cannot be used.
func (f *usersFile) reload() error {
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
func (f *usersFile) status() (rejected int64, stale bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rejected, f.stale
}

// registerMetrics registers the metrics of users, which are read at each scrape.
func (f *usersFile) registerMetrics(r *prometheus.Registry) {
	const name, help = "limitgate_auth_total", "Attempts of clients to authenticate, by result."
	metrics.LabelledCounter(r, name, help, "result", map[string]func() int64{
		"ok":        func() int64 { return f.auth.Counts().OK },
		"wrong":     func() int64 { return f.auth.Counts().Wrong },
		"too_often": func() int64 { return f.auth.Counts().TooOften },
		"busy":      func() int64 { return f.auth.Counts().Busy },
	})
	metrics.Counter(r, "limitgate_auth_hashes_total", "Computations of Argon2id, of some ten milliseconds each.", func() int64 { return f.auth.Counts().Hashes })
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
