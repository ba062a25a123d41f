package redisauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/limitgate/limitgate/internal/run"
)

const (
	// secretEvery is how often a secret is read again, and readTimeout bounds such a read.
	secretEvery = 5 * time.Minute
	readTimeout = 10 * time.Second
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

// Run reads the secret again from time to time, until ctx ends. It ends the reads of others as
// well.
func (s *Secret) Run(ctx context.Context) error {
	for run.Sleep(ctx, secretEvery/2+rand.N(secretEvery)) {
		s.mu.Lock()
		s.startRead(ctx)
		reading := s.reading
		s.mu.Unlock()
		waitFor(ctx, reading)
	}
	s.mu.Lock()
	s.ended = true
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	s.reads.Wait()
	return nil
}

// startRead starts a read in the background, unless there is one. It closes reading when the
// present version is read. The caller holds mu.
func (s *Secret) startRead(ctx context.Context) {
	if s.reading != nil || s.ended {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	done := make(chan struct{})
	s.reading, s.stop = done, stop
	s.reads.Go(func() {
		defer stop()
		isNew, err := s.readCurrent(ctx)
		s.mu.Lock()
		if err != nil && !s.ended {
			s.log.Warn("failed to read the secret of Redis, keeping the last password", "error", err)
		}
		s.mu.Unlock()
		close(done)
		if isNew {
			s.readPrevious(ctx)
		}
		s.mu.Lock()
		s.reading, s.stop = nil, nil
		s.mu.Unlock()
	})
}

// readCurrent reads the present version, and reports whether it is another one. The one before
// it is then the last that was read, until readPrevious has read it.
func (s *Secret) readCurrent(ctx context.Context) (isNew bool, err error) {
	current, err := s.get(ctx, stageCurrent)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = time.Now()
	if current == s.current {
		return false, nil
	}
	s.current, s.previous, s.until = current, s.current, time.Time{}
	return true, nil
}

// readPrevious reads the version before the last rotation. The first version has none.
func (s *Secret) readPrevious(ctx context.Context) {
	previous, err := s.get(ctx, stagePrevious)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.previous = previous
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
