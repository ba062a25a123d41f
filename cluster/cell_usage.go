package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

const (
	// admittedPrefix begins the names of sorted sets of what all proxies of a cell admitted
	// in a window, whose number follows; the one that is told on has admittedTold behind it.
	admittedPrefix = "lg:admitted:"
	admittedTold   = ":told"
	// admittedTTL is how long they are kept.
	admittedTTL = 5 * time.Minute
)

// AddAdmitted adds what this proxy admitted in a window of some buckets to what others did,
// as shares of limits. With an error some of it may have been added.
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
		return fmt.Errorf("add what was admitted: %w", err)
	}
	return nil
}

// Admitted returns what all proxies admitted in a window of the n buckets of which it was
// most; ok is false when another proxy was told already.
func (s *Store) Admitted(ctx context.Context, window int64, n int) (shares map[string]float64, ok bool, err error) {
	key := admittedPrefix + strconv.FormatInt(window, 10)
	c, err := s.owner(key)
	if err != nil {
		return nil, false, err
	}
	told, err := s.owner(key + admittedTold)
	if err != nil {
		return nil, false, err
	}
	err = told.SetArgs(ctx, key+admittedTold, "1", redis.SetArgs{Mode: "NX", TTL: admittedTTL}).Err()
	if errors.Is(err, redis.Nil) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read what was admitted: %w", err)
	}
	largest, err := c.ZRevRangeWithScores(ctx, key, 0, int64(n)-1).Result()
	if err != nil {
		return nil, false, fmt.Errorf("read what was admitted: %w", err)
	}
	shares = map[string]float64{}
	for _, z := range largest {
		if name, ok := z.Member.(string); ok {
			shares[name] = z.Score
		}
	}
	return shares, true, nil
}

// owner returns the connections to the master of a key.
func (s *Store) owner(key string) (*redis.Client, error) {
	n := s.top.Load().owner(limit.HashSlot([]byte(key)))
	if n == nil {
		return nil, errNoNode
	}
	return n.client, nil
}
