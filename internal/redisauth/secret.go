package redisauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/limitgate/limitgate/internal/run"
)

const (
	// secretEvery is how often a secret is read again, and secretPause the least time
	// between two reads because a node refused its password: a fleet must not ask AWS at each
	// of its attempts to connect.
	secretEvery = 5 * time.Minute
	secretPause = 10 * time.Second
	// stageCurrent and stagePrevious are the labels of the present version of a secret, and
	// of the one before the last rotation.
	stageCurrent  = "AWSCURRENT"
	stagePrevious = "AWSPREVIOUS"
)

// VersionReader returns the text of a version of a secret, by its label.
type VersionReader func(ctx context.Context, stage string) (text string, err error)

// SecretsManager returns a reader of a secret of AWS Secrets Manager, by name or ARN.
func SecretsManager(config aws.Config, id string) VersionReader {
	client := secretsmanager.NewFromConfig(config)
	return func(ctx context.Context, stage string) (string, error) {
		out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id, VersionStage: &stage})
		if err != nil {
			return "", fmt.Errorf("read secret %s: %w", id, err)
		}
		return aws.ToString(out.SecretString), nil
	}
}

// Secret supplies the password of a secret in AWS Secrets Manager, which is a text, or JSON
// with the keys username and password as AWS's rotation writes it. It is safe for concurrent
// use. After a rotation it supplies the new password, or the previous one to nodes that do not
// know the new one yet.
type Secret struct {
	reader VersionReader
	user   string // takes precedence over the secret's
	log    *slog.Logger

	mu       sync.Mutex // guards the fields below, and coalesces reads
	current  account
	refused  time.Time // when current was last read because of a refusal
	previous account   // supplied before until
	until    time.Time
	asked    bool // previous was read since current was
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

// Run reads the secret again from time to time, until ctx ends.
func (s *Secret) Run(ctx context.Context) error {
	for run.Sleep(ctx, secretEvery/2+rand.N(secretEvery)) {
		s.mu.Lock()
		err := s.refresh(ctx)
		s.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			s.log.Warn("failed to read the secret of Redis, keeping the last password", "error", err)
		}
	}
	return nil
}

// Credentials returns the user and the password in use.
func (s *Secret) Credentials(ctx context.Context) (user, password string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Password == "" {
		if err := s.refresh(ctx); err != nil {
			return "", "", err
		}
	}
	a := s.current
	if time.Now().Before(s.until) {
		a = s.previous
	}
	return cmp.Or(s.user, a.User), a.Password, nil
}

// Refused reads the secret again, and reports whether there is another password: the new one
// after a rotation, or the previous one if the node does not know the new one yet.
func (s *Secret) Refused(ctx context.Context, password string) (retry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if password != s.current.Password && !time.Now().Before(s.until) {
		return true // another connection has read the secret meanwhile
	}
	if time.Since(s.refused) > secretPause {
		s.refused = time.Now()
		if err := s.refresh(ctx); err != nil {
			s.log.Warn("failed to read the secret of Redis", "error", err)
		}
		if s.current.Password != password {
			s.until = time.Time{}
			return true
		}
	}
	if time.Now().Before(s.until) || s.asked { // the previous password is refused as well
		return false
	}
	s.asked = true
	previous, err := s.get(ctx, stagePrevious)
	if err != nil || previous.Password == password {
		return false
	}
	s.previous, s.until = previous, time.Now().Add(secretPause)
	return true
}

// refresh reads the present version. The caller holds mu.
func (s *Secret) refresh(ctx context.Context) error {
	s.asked = false
	now, err := s.get(ctx, stageCurrent)
	if err == nil {
		s.current = now
	}
	return err
}

// get reads a version of the secret.
func (s *Secret) get(ctx context.Context, stage string) (account, error) {
	text, err := s.reader(ctx, stage)
	if err != nil {
		return account{}, err
	}
	var a account
	if json.Unmarshal([]byte(text), &a) != nil { // the error would contain the text
		a = account{Password: text}
	}
	if a.Password == "" {
		return account{}, errNoPassword
	}
	return a, nil
}

// errNoPassword is returned for a secret of another kind.
var errNoPassword = errors.New(`read secret: it has no password: it should be a text, or JSON with the keys "username" and "password"`)
