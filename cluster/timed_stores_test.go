package cluster

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// timedStores are both stores, on a clock that a test sets.
type timedStores struct {
	byName map[string]limiter.Store
	redis  *redis.Client
}

func openTimedStores(t *testing.T) timedStores {
	t.Helper()
	node := redistest.Start(t)
	store, err := openWith(t.Context(), Options{Addrs: []string{node.Addr}, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second}, onFakeClock(t))
	if err != nil {
		t.Fatal(err)
	}
	running(t, store)
	return timedStores{map[string]limiter.Store{"redis": store, "memory": memory.New(memory.Options{})}, client(t, node.Addr)}
}

// at sets the clock of Redis to now, and returns the decision time for both stores.
func (s timedStores) at(t *testing.T, now int64) limit.DecisionTime {
	t.Helper()
	if err := s.redis.Do(t.Context(), toAny(clockArgs(now))...).Err(); err != nil {
		t.Fatal(err)
	}
	return limit.DecisionTime{Now: now, Start: time.Now(), Timeout: 5 * time.Second}
}

func toAny(words []string) []any {
	all := make([]any, len(words))
	for i, w := range words {
		all[i] = w
	}
	return all
}
