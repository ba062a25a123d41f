package cluster

import (
	"context"
	"fmt"
	"strings"
)

// ConfigWarnings returns a sentence for each setting of the store that would make it lose
// buckets. Operators should read them at startup.
func (s *Store) ConfigWarnings(ctx context.Context) []string {
	var out []string
	for addr, n := range s.top.Load().nodes {
		info, err := n.client.Info(ctx, "memory").Result()
		if err != nil {
			out = append(out, fmt.Sprintf("%s does not report its memory policy: %s", addr, err))
			continue
		}
		if policy := infoField(info, "maxmemory_policy"); policy != noEviction && policy != "" {
			out = append(out, addr+" "+evicts(policy))
		}
	}
	return out
}

// evicts describes the effect of a maxmemory-policy other than noeviction.
func evicts(policy string) string {
	return fmt.Sprintf("evicts keys under memory pressure (maxmemory-policy %s), which fills buckets: set %s", policy, noEviction)
}

// infoField returns a field of an INFO reply, or "".
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
