package cluster

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// bucketLogPause is the least time between two lines about the same key.
	bucketLogPause = time.Minute
	// bucketLogKeys bounds the keys that are logged in a bucketLogPause: every check of
	// such a bucket fails on its value again.
	bucketLogKeys = 100
	// loggedKeyBytes bounds the bytes of a key in a log line.
	loggedKeyBytes = 256
)

// bucketLog logs buckets whose values cannot be read, each at most once in a
// bucketLogPause. It is safe for concurrent use.
type bucketLog struct {
	mu     sync.Mutex // guards the fields below
	since  time.Time
	logged map[string]bool // since that time
}

// report logs that one of the items' keys holds a value that is not a bucket.
func (b *bucketLog) report(log *slog.Logger, items []limit.Item, err error) {
	if !b.isNew(items) {
		return
	}
	var keys []string
	for i := range items {
		key := items[i].Name[:items[i].KeyLen]
		keys = append(keys, string(key[:min(len(key), loggedKeyBytes)]))
	}
	slices.Sort(keys)
	log.Error("one of these keys holds a value that is not a bucket: look at each by TYPE, and delete it by DEL", "keys", slices.Compact(keys), "error", err)
}

// isNew reports whether one of the items' keys is to be logged.
func (b *bucketLog) isNew(items []limit.Item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.since) >= bucketLogPause {
		b.since, b.logged = now, map[string]bool{}
	}
	found := false
	for i := range items {
		key := items[i].Name[:items[i].KeyLen]
		if !b.logged[string(key)] && len(b.logged) < bucketLogKeys {
			b.logged[string(key)] = true
			found = true
		}
	}
	return found
}
