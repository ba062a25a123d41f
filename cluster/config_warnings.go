package cluster

import (
	"context"
	"fmt"
	"strings"
)

// ConfigWarnings returns a sentence for each setting of the store that would make
// limits forget: operators should read them at the start.
func (s *Store) ConfigWarnings(ctx context.Context) []string {
	var out []string
	for addr, n := range s.top.Load().nodes {
		info, err := n.client.Info(ctx, "memory").Result()
		if err != nil {
			out = append(out, fmt.Sprintf("%s does not tell its memory policy: %s", addr, err))
			continue
		}
		if policy := infoField(info, "maxmemory_policy"); policy != noEviction && policy != "" {
			out = append(out, addr+" "+evicts(policy))
		}
	}
	return out
}

// evicts says what a maxmemory-policy other than noeviction means.
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
