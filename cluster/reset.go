package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
)

const (
	// scanStep is the number of keys in a step of a scan, small enough not to block the
	// node for long.
	scanStep = 1000
	// scanPause is the pause between two steps, in which the node serves other calls.
	scanPause = time.Millisecond
)

// Reset deletes the buckets of a tenant, or of one of its limits if id is not empty;
// without a tenant it deletes those of the shared limit id. It returns the number of
// deleted buckets. It scans the keys of the owning masters in steps: it is meant for
// operators, not for traffic.
func (s *Store) Reset(ctx context.Context, tenant, id string) (int64, error) {
	t := s.top.Load()
	if len(t.nodes) == 0 {
		return 0, fmt.Errorf("reset buckets: %w", s.unreached())
	}
	if tenant == "" {
		n := int64(0)
		for _, node := range t.nodes {
			removed, err := node.unlinkMatching(ctx, limit.SharedKeyPrefix(id), func(string) bool { return true })
			n += removed
			if err != nil {
				return n, err
			}
		}
		return n, nil
	}
	key := limit.TenantKey(tenant)
	node, err := t.ownerOf(key)
	if err != nil {
		return 0, fmt.Errorf("reset tenant: %w", err)
	}
	n, err := s.removeFields(ctx, node.client, key, id)
	if err != nil {
		return n, err
	}
	removed, err := node.unlinkMatching(ctx, key+":", func(name string) bool {
		if limit.IsHold(name) {
			return id == "" // slots of other limits may still be held
		}
		return id == "" || limit.IsRecord(name) || limit.OwnedBy(strings.TrimPrefix(name, key), id)
	})
	return n + removed, err
}

// Forget deletes the bucket whose key is name, and reports whether it existed.
func (s *Store) Forget(ctx context.Context, name string) (bool, error) {
	c, err := s.owner(name)
	if err != nil {
		return false, fmt.Errorf("forget bucket: %w", err)
	}
	n, err := c.Unlink(ctx, name).Result()
	if err != nil {
		return false, fmt.Errorf("forget bucket: %w", err)
	}
	return n > 0, nil
}

// removeFields removes the fields of one limit, or all, from a tenant's string.
func (s *Store) removeFields(ctx context.Context, c *redis.Client, key, id string) (int64, error) {
	prefix := ":"
	if id != "" {
		prefix += id + ";"
	}
	reply, err := s.script.run(ctx, c, []string{key}, "reset", 0, 1, prefix).Slice()
	if err != nil {
		return 0, fmt.Errorf("reset tenant: %w", err)
	}
	if len(reply) == 2 {
		switch n := reply[1].(type) {
		case int64:
			return n, nil
		case string:
			return 0, fmt.Errorf("reset tenant: %s", n)
		}
	}
	return 0, fmt.Errorf("reset tenant: %w: %v", resp.ErrReply, reply)
}

// unlinkMatching deletes the keys that begin with prefix and match, and returns how many of
// them were buckets.
func (n *node) unlinkMatching(ctx context.Context, prefix string, match func(string) bool) (int64, error) {
	removed := int64(0)
	cursor := uint64(0)
	for {
		keys, next, err := n.client.Scan(ctx, cursor, globEscape(prefix)+"*", scanStep).Result()
		if err != nil {
			return removed, fmt.Errorf("scan %s: %w", n.addr, err)
		}
		for _, k := range keys {
			if !match(k) {
				continue
			}
			one, err := n.client.Unlink(ctx, k).Result()
			if err != nil {
				return removed, fmt.Errorf("unlink bucket: %w", err)
			}
			if !limit.IsRecord(k) {
				removed += one
			}
		}
		if next == 0 {
			return removed, nil
		}
		cursor = next
		select {
		case <-ctx.Done():
			return removed, fmt.Errorf("scan %s: %w", n.addr, ctx.Err())
		case <-time.After(scanPause):
		}
	}
}

var globSpecial = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// globEscape returns a pattern that matches only s.
func globEscape(s string) string { return globSpecial.Replace(s) }
