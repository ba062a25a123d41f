package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Claim stores a value under a key, for a time, if the key has none or has that value, and returns the value that it has then. So
// proxies that disagree notice it: the key keeps the value of those that came first, for as long as they claim it.
func (s *Store) Claim(ctx context.Context, key, value string, ttl time.Duration) (held string, err error) {
	c, err := s.owner(key)
	if err != nil {
		return "", err
	}
	held, err = c.Get(ctx, key).Result()
	switch {
	case errors.Is(err, redis.Nil):
		err = c.SetArgs(ctx, key, value, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
		if held = value; errors.Is(err, redis.Nil) { // another proxy came between: the next call compares
			return value, nil
		}
	case err == nil && held == value:
		err = c.Set(ctx, key, value, ttl).Err()
	}
	if err != nil {
		return "", fmt.Errorf("claim %s: %w", key, explained(err))
	}
	return held, nil
}
