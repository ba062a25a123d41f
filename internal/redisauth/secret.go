package redisauth

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

// secretPause is the least time between two reads because a node refused the password, since a
// fleet must not ask AWS at each of its attempts to connect, and the time for which the previous
// password is supplied at most. A password that was read within secretFresh is not read again.
const (
	secretPause = 10 * time.Second
	secretFresh = time.Second
)

// Secret supplies the password of a secret in AWS Secrets Manager, which is a text, or JSON
// with the keys username and password as AWS's rotation writes it. It is safe for concurrent
// use. After a rotation it supplies the new password, or the previous one to nodes that do not
// know the new one yet. A read of the secret may take longer than a connection to a node may
// take to open, so reads are in the background.
type Secret struct {
	reader VersionReader
	user   string // takes precedence over the secret's
	log    *slog.Logger
	reads  sync.WaitGroup // those in the background

	mu       sync.Mutex // guards the fields below
	current  account
	previous account   // empty if the secret has none; supplied before until
	until    time.Time // zero after a rotation, and when previous is refused
	read     time.Time // when current was last read
	refused  time.Time // when the last read began because of a refusal
	// reading is closed when the read in the background has the present version, and stop ends
	// that read. Both are nil without one. No other one begins after Run has ended.
	reading chan struct{}
	stop    context.CancelFunc
	ended   bool
}

// account is a user and a password.
type account struct {
	User     string `json:"username"`
	Password string `json:"password"`
}

// NewSecret returns the credentials of a secret. An empty user is that of the secret.
func NewSecret(reader VersionReader, user string, log *slog.Logger) *Secret {
	return &Secret{reader: reader, user: user, log: log}
}

// Credentials returns the user and the password in use.
func (s *Secret) Credentials(ctx context.Context) (user, password string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Password == "" {
		s.mu.Unlock()
		_, err := s.readCurrent(ctx)
		if err == nil {
			s.readPrevious(ctx)
		}
		s.mu.Lock()
		if err != nil {
			return "", "", err
		}
	}
	a := s.inUse()
	return cmp.Or(s.user, a.User), a.Password, nil
}

// inUse returns the account to log in with. The caller holds mu.
func (s *Secret) inUse() account {
	if time.Now().Before(s.until) {
		return s.previous
	}
	return s.current
}

// Refused reads the secret again, and reports whether there is another password: the new one
// after a rotation, or the previous one if the node does not know the new one yet. When ctx ends
// before the read, the next connections have its result.
func (s *Secret) Refused(ctx context.Context, password string) (retry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse().Password != password {
		return true // another connection has been refused before
	}
	if time.Now().Before(s.until) {
		s.until = time.Time{} // this node may know the present password
		return true
	}
	if time.Since(s.refused) > secretPause && time.Since(s.read) > secretFresh {
		s.refused = time.Now()
		s.startRead(ctx)
	}
	if reading := s.reading; reading != nil {
		s.mu.Unlock()
		isOver := waitFor(ctx, reading)
		s.mu.Lock()
		if !isOver {
			return false
		}
	}
	if s.inUse().Password == password {
		if s.previous.Password == "" || s.previous.Password == password {
			return false
		}
		s.until = time.Now().Add(secretPause)
	}
	return true
}

// waitFor waits until done is closed, and returns false if ctx ends before.
func waitFor(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
