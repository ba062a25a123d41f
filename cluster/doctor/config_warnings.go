package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/limitgate/limitgate/cluster"
)

// ConfigWarnings returns a sentence for each setting of the store that would make it lose
// buckets. Operators should read them at startup.
func ConfigWarnings(ctx context.Context, s *cluster.Store) []string {
	var out []string
	for addr, info := range s.Info(ctx, "memory") {
		if info.Err != nil {
			out = append(out, fmt.Sprintf("%s does not report its memory policy: %s", addr, info.Err))
			continue
		}
		if policy := infoField(info.Text, "maxmemory_policy"); policy != noEviction && policy != "" {
			out = append(out, addr+" "+evicts(policy))
		}
	}
	return out
}

// noEviction is the maxmemory-policy that never evicts keys.
const noEviction = "noeviction"

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
