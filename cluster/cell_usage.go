package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// admittedPrefix is the prefix of the keys of sorted sets. Each holds the units that
	// all proxies of a cell admitted in a window, whose number follows the prefix. The key
	// with the suffix admittedTold marks a window that a proxy has reported already.
	admittedPrefix   = "lg:admitted:"
	admittedReported = ":told"
	// admittedTTL is the expiry of these keys.
	admittedTTL = 5 * time.Minute
)

// AddAdmitted adds this proxy's admitted units of some buckets in a window, as shares of
// limits, to those of the other proxies. If it returns an error, some of them may have been
// added.
func (s *Store) AddAdmitted(ctx context.Context, window int64, shares map[string]float64) error {
	key := admittedPrefix + strconv.FormatInt(window, 10)
	c, err := s.owner(key)
	if err != nil || len(shares) == 0 {
		return err
	}
	_, err = c.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		for name, share := range shares {
			pipe.ZIncrBy(ctx, key, share, name)
		}
		pipe.PExpire(ctx, key, admittedTTL)
		return nil
	})
	if err != nil {
		return fmt.Errorf("add admitted units: %w", err)
	}
	return nil
}

// Admitted returns the units that all proxies admitted in a window, for the n buckets with
// the largest shares. ok is false if another proxy has fetched the window already.
func (s *Store) Admitted(ctx context.Context, window int64, n int) (shares map[string]float64, ok bool, err error) {
	key := admittedPrefix + strconv.FormatInt(window, 10)
	c, err := s.owner(key)
	if err != nil {
		return nil, false, err
	}
	owner, err := s.owner(key + admittedReported)
	if err != nil {
		return nil, false, err
	}
	err = owner.SetArgs(ctx, key+admittedReported, "1", redis.SetArgs{Mode: "NX", TTL: admittedTTL}).Err()
	if errors.Is(err, redis.Nil) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read admitted units: %w", err)
	}
	largest, err := c.ZRevRangeWithScores(ctx, key, 0, int64(n)-1).Result()
	if err != nil {
		return nil, false, fmt.Errorf("read admitted units: %w", err)
	}
	shares = map[string]float64{}
	for _, z := range largest {
		if name, ok := z.Member.(string); ok {
			shares[name] = z.Score
		}
	}
	return shares, true, nil
}

// owner returns the client of the master that owns a key.
func (s *Store) owner(key string) (*redis.Client, error) {
	t := s.top.Load()
	if len(t.nodes) == 0 {
		return nil, s.unreached()
	}
	n, err := t.ownerOf(key)
	if err != nil {
		return nil, err
	}
	return n.client, nil
}
