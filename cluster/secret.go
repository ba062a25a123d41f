package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
)

const (
	// secretKey is the key of the secret that the proxies of a store agree on.
	secretKey = "lg:secret"
	// secretTTL is the expiry of the secret after the last proxy has stopped. A limit by a hashed dimension begins anew
	// with another secret, and the longest usual one is a month.
	secretTTL = 40 * 24 * time.Hour
	// secretRefresh is the interval at which each proxy prolongs the secret, so that a
	// store that lost the secret has it again before another proxy makes one of its own.
	secretRefresh = 2 * time.Second
)

// errNoSecret is the reason why the store does not decide yet for a proxy that started
// without it.
var errNoSecret = errors.New("agree on secret: the store answers and has none yet; this proxy makes one within seconds, unless another one knows it from before")

// refusedSecret is errNoSecret of a store that refused to keep one, with its reply, which may be some seconds old.
type refusedSecret struct{ reply error }

func (e refusedSecret) Error() string {
	return strings.TrimSuffix(e.reply.Error(), ".") + "; this proxy asks again within seconds, and has this reply until then"
}
func (e refusedSecret) Unwrap() []error { return []error{e.reply, errNoSecret} }

// errSecret is returned if secretKey holds no secret.
var errSecret = errors.New("agree on secret: the key " + secretKey + " holds something else than proxies write: delete it, or set --privacy-ip-secret-file")

// agreeAtOnce agrees on the secret during Open. It does nothing if no secret is to be
// agreed on.
func (s *Store) agreeAtOnce(ctx context.Context, t *topology) error {
	if s.opts.Secret == nil {
		return nil
	}
	secret, err := s.agree(ctx, t, s.opts.Secret)
	if err == nil {
		s.adopt(secret)
	}
	s.noteRefusal(err)
	return err
}

// noteRefusal keeps the error of a node that has no memory left for the secret, as the reason why there is none. One that refuses
// writes for another reason refuses readSecret, too.
func (s *Store) noteRefusal(err error) {
	s.refused = nil
	if err != nil && kindOf(err) == KindOOM {
		s.refused = err
	}
}

// agreeLate agrees on the secret after a start without the store. A store that came back
// empty gets the secret of a proxy that knows it: this proxy proposes its own only after
// all others have had time to do that. Only Run calls it.
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
			if s.refused != nil {
				return refusedSecret{s.refused}
			}
			return errNoSecret
		}
		secret, err = s.agree(ctx, t, s.opts.Secret)
		s.noteRefusal(err)
	}
	s.secretless = time.Time{}
	if err != nil {
		return err
	}
	s.adopt(secret)
	// A decision in progress whose addresses were hashed with the previous secret must not
	// reach the store. None lasts longer than IOTimeout.
	run.Sleep(ctx, s.opts.IOTimeout)
	return nil
}

// adopt passes on the agreed secret. From then on Run keeps it in the store.
func (s *Store) adopt(secret []byte) {
	s.secret.Store(&secret)
	s.opts.Adopt(secret)
}

// agree returns the secret in the store, after storing proposal if there is none.
func (s *Store) agree(ctx context.Context, t *topology, proposal []byte) ([]byte, error) {
	n, err := t.ownerOf(secretKey)
	if err != nil {
		return nil, fmt.Errorf("agree on secret: %w", err)
	}
	text := base64.RawStdEncoding.EncodeToString(proposal)
	if _, err := n.client.SetNX(ctx, secretKey, text, secretTTL).Result(); err != nil {
		return nil, fmt.Errorf("agree on secret: %w", explained(withoutArguments(err)))
	}
	return s.readSecret(ctx, t)
}

// errSet is returned for a node that does not implement SET.
const errSet = configError("the node does not know SET as Redis does: it may be a limitgate, or have renamed it")

// withoutArguments returns the error of a SET without the secret: a node may repeat the
// arguments of an unknown command.
func withoutArguments(err error) error {
	if reply := redis.Error(nil); errors.As(err, &reply) && kindOf(err) == KindOther {
		return errSet
	}
	return err
}

// readSecret returns the secret in the store and prolongs it. The error is redis.Nil if
// there is none.
func (s *Store) readSecret(ctx context.Context, t *topology) ([]byte, error) {
	n, err := t.ownerOf(secretKey)
	if err != nil {
		return nil, fmt.Errorf("agree on secret: %w", err)
	}
	agreed, err := n.client.GetEx(ctx, secretKey, secretTTL).Result()
	if err != nil && kindOf(err) == KindWrongType {
		return nil, errSecret
	}
	if err != nil {
		return nil, fmt.Errorf("agree on secret: %w", explained(err))
	}
	secret, err := base64.RawStdEncoding.DecodeString(agreed)
	if err != nil || len(secret) < limit.MinSecretBytes {
		return nil, errSecret
	}
	return secret, nil
}

// keepSecret prolongs the secret, or stores it again after the store lost it. A proxy that
// restarts then finds it and hashes like the others. If another proxy was faster to store its
// own, that one replaces the secret: with two of them a limit would count twice for good.
func (s *Store) keepSecret(ctx context.Context) {
	secret := s.secret.Load()
	if secret == nil || time.Since(time.Unix(s.secretKept.Load(), 0)) < secretRefresh {
		return
	}
	agreed, err := s.agree(ctx, s.top.Load(), *secret)
	switch {
	case err != nil:
		if ctx.Err() == nil && s.secretLog.Allow() {
			s.opts.Log.Warn("failed to prolong the secret for addresses: it is kept in memory, and prolonged again soon", "error", err)
		}
		return
	case string(agreed) != string(*secret):
		s.opts.Log.Warn("the store lost the secret of this proxy and has that of another one, which this proxy uses from now on: its limits by ip and by dimensions with hash: true begin anew")
		s.adopt(agreed)
	}
	s.secretKept.Store(time.Now().Unix())
}
