package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

const (
	// secretKey holds the secret that the proxies of a store agreed on.
	secretKey = "lg:secret"
	// secretTTL is how long it is kept after the last proxy has gone.
	secretTTL = 24 * time.Hour
	// secretRefresh is how often each proxy prolongs it, so that a store that lost
	// it has it back before another proxy makes one of its own.
	secretRefresh = 2 * time.Second
)

// errNoSecret is why the store decides nothing yet for a proxy that started without it.
var errNoSecret = errors.New("agree on secret: the store has none, and proxies that know one are waited for")

// errSecret is why a secret cannot be agreed on.
var errSecret = errors.New("agree on secret: " + secretKey + " holds something else")

// agreeAtOnce agrees on the secret on a topology, unless there is none to agree on.
func (s *Store) agreeAtOnce(ctx context.Context, t *topology) error {
	if s.opts.Secret == nil {
		return nil
	}
	secret, err := s.agree(ctx, t, s.opts.Secret)
	if err == nil {
		s.adopt(secret)
	}
	return err
}

// agreeLate agrees on the secret once the store has been reached that was out of reach at
// the start. A store that came back empty gets the secret of a proxy that knows it: this one
// proposes its own only when all others have had the time for that. Only Run calls it.
func (s *Store) agreeLate(ctx context.Context, t *topology) error {
	if s.opts.Secret == nil || s.secret.Load() != nil {
		return nil
	}
	secret, err := s.readSecret(ctx, t)
	if errors.Is(err, redis.Nil) {
		if s.secretless.IsZero() {
			s.secretless = time.Now()
		}
		if time.Since(s.secretless) < s.opts.ReloadInterval+secretRefresh {
			return errNoSecret
		}
		secret, err = s.agree(ctx, t, s.opts.Secret)
	}
	s.secretless = time.Time{}
	if err != nil {
		return err
	}
	s.adopt(secret)
	// No decision that is under way with the addresses hashed as before may reach the
	// store. None lasts longer.
	wait(ctx, s.opts.IOTimeout)
	return nil
}

// adopt hands on the secret that was agreed on. Run keeps it in the store from then on.
func (s *Store) adopt(secret []byte) {
	s.secret.Store(&secret)
	s.opts.Adopt(secret)
}

// agree returns the secret in the store, and puts proposal there if it has none.
func (s *Store) agree(ctx context.Context, t *topology, proposal []byte) ([]byte, error) {
	n := t.owner(limit.HashSlot([]byte(secretKey)))
	if n == nil {
		return nil, fmt.Errorf("agree on secret: %w", errNoNode)
	}
	text := base64.RawStdEncoding.EncodeToString(proposal)
	if _, err := n.client.SetNX(ctx, secretKey, text, secretTTL).Result(); err != nil {
		return nil, fmt.Errorf("agree on secret: %w", withoutArguments(err))
	}
	return s.readSecret(ctx, t)
}

// errSet is why a secret cannot be agreed on with a node that refuses to keep it.
const errSet = configError("the node does not know SET as Redis does: it may be a limitgate, or have renamed it")

// withoutArguments returns the error of a SET without what it was to keep: a node may repeat
// the arguments of a command that it does not know.
func withoutArguments(err error) error {
	if reply := redis.Error(nil); errors.As(err, &reply) && kindOf(err) == KindOther {
		return errSet
	}
	return err
}

// readSecret returns the secret in the store, and prolongs it. The error is redis.Nil where
// it has none.
func (s *Store) readSecret(ctx context.Context, t *topology) ([]byte, error) {
	n := t.owner(limit.HashSlot([]byte(secretKey)))
	if n == nil {
		return nil, fmt.Errorf("agree on secret: %w", errNoNode)
	}
	agreed, err := n.client.GetEx(ctx, secretKey, secretTTL).Result()
	if err != nil {
		return nil, fmt.Errorf("agree on secret: %w", err)
	}
	secret, err := base64.RawStdEncoding.DecodeString(agreed)
	if err != nil || len(secret) < limit.MinSecretBytes {
		return nil, errSecret
	}
	return secret, nil
}

// keepSecret prolongs the secret, or puts it back when the store lost it. A
// proxy that restarts finds it then, and hashes as the others do.
func (s *Store) keepSecret(ctx context.Context) {
	secret := s.secret.Load()
	if secret == nil || time.Since(time.Unix(s.secretKept.Load(), 0)) < secretRefresh {
		return
	}
	agreed, err := s.agree(ctx, s.top.Load(), *secret)
	switch {
	case err != nil:
		if s.secretLog.allow() {
			s.opts.Log.Warn("the secret for addresses could not be prolonged", "error", err)
		}
		return
	case string(agreed) != string(*secret):
		s.opts.Log.Error("another secret for addresses is in the store than this proxy hashes with: restart it, or set privacy.ip_secret_file")
	}
	s.secretKept.Store(time.Now().Unix())
}
