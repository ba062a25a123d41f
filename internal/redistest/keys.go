package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const (
	scanCount = 1000 // keys that a server looks at per SCAN
	namedKeys = 20   // keys that a failure names
)

// FlushAll deletes every key on the given masters.
func FlushAll(tb testing.TB, masters ...*Node) {
	tb.Helper()
	for _, node := range masters {
		node.mustAsk(tb, "FLUSHALL")
	}
}

// AssertAllKeysExpire fails the test, naming the keys, if a key on the given nodes never
// expires. It skips replicas, which hold the keys of their masters; there must be a
// master among the nodes. It returns the number of checked keys, so that a test can
// require some.
func AssertAllKeysExpire(tb testing.TB, nodes ...*Node) int {
	tb.Helper()
	masters, total := 0, 0
	for _, node := range nodes {
		role, err := node.Fields(lasting(tb), "INFO", "replication")
		if err != nil {
			tb.Fatal(err)
		}
		if role["role"] != "master" {
			continue
		}
		masters++
		checked, eternal, err := node.eternalKeys(lasting(tb))
		if err != nil {
			tb.Fatal(err)
		}
		total += checked
		if len(eternal) > 0 {
			tb.Errorf("%d of %d keys on %s never expire: %s", len(eternal), checked, node.Addr,
				strings.Join(eternal[:min(len(eternal), namedKeys)], " "))
		}
	}
	if masters == 0 {
		tb.Fatal("look for keys that never expire: no master among the nodes")
	}
	return total
}

// eternalKeys returns the number of keys on the node, and the quoted names of
// those that have no time to live.
func (n *Node) eternalKeys(ctx context.Context) (checked int, eternal []string, err error) {
	client := n.Client()
	defer func() { _ = client.Close() }()
	seen := make(map[string]bool) // SCAN may return a key twice
	for cursor := uint64(0); ; {
		var keys []string
		keys, cursor, err = client.Scan(ctx, cursor, "", scanCount).Result()
		if err != nil {
			return 0, nil, fmt.Errorf("scan %s: %w", n.Addr, err)
		}
		found, err := withoutExpiry(ctx, client, keys, seen)
		if err != nil {
			return 0, nil, fmt.Errorf("ask %s for expiries: %w", n.Addr, err)
		}
		eternal = append(eternal, found...)
		if cursor == 0 {
			return len(seen), eternal, nil
		}
	}
}

// withoutExpiry reads the time to live of the keys not seen before.
func withoutExpiry(ctx context.Context, client *redis.Client, keys []string, seen map[string]bool) ([]string, error) {
	pipeline := client.Pipeline()
	var asked []string
	var answers []*redis.Cmd
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		asked = append(asked, key)
		answers = append(answers, pipeline.Do(ctx, "PTTL", key))
	}
	if len(asked) == 0 {
		return nil, nil
	}
	if _, err := pipeline.Exec(ctx); err != nil {
		return nil, err
	}
	var eternal []string
	for i, answer := range answers {
		left, err := answer.Int()
		if err != nil {
			return nil, err
		}
		// -1 means no expiry; -2 that the key has expired by now.
		if left == -1 {
			eternal = append(eternal, fmt.Sprintf("%q", asked[i]))
		}
	}
	return eternal, nil
}
