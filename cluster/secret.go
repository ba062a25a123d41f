package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

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

// AgreeSecret returns the secret that all proxies of this store share: the one
// that is there, or else proposal, which all others will get from then on.
// Run keeps it there from then on.
func (s *Store) AgreeSecret(ctx context.Context, proposal []byte) ([]byte, error) {
	secret, err := s.agree(ctx, proposal)
	if err == nil {
		s.secret.Store(&secret)
	}
	return secret, err
}

// agree returns the secret in the store, and puts proposal there if it has none.
func (s *Store) agree(ctx context.Context, proposal []byte) ([]byte, error) {
	n := s.top.Load().owner(limit.Slot([]byte(secretKey)))
	if n == nil {
		return nil, fmt.Errorf("agree on secret: no node owns its slot")
	}
	text := base64.RawStdEncoding.EncodeToString(proposal)
	if _, err := n.client.SetNX(ctx, secretKey, text, secretTTL).Result(); err != nil {
		return nil, fmt.Errorf("agree on secret: %w", err)
	}
	agreed, err := n.client.GetEx(ctx, secretKey, secretTTL).Result()
	if err != nil {
		return nil, fmt.Errorf("agree on secret: %w", err)
	}
	secret, err := base64.RawStdEncoding.DecodeString(agreed)
	if err != nil || len(secret) < limit.MinSecretBytes {
		return nil, fmt.Errorf("agree on secret: %s holds something else", secretKey)
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
	agreed, err := s.agree(ctx, *secret)
	switch {
	case err != nil:
		if s.unkept.now() {
			s.opts.Log.Warn("the secret for addresses could not be prolonged", "error", err)
		}
		return
	case string(agreed) != string(*secret):
		s.opts.Log.Error("another secret for addresses is in the store than this proxy hashes with: restart it, or set privacy.ip_secret_file")
	}
	s.secretKept.Store(time.Now().Unix())
}
