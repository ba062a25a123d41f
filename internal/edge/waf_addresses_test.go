package edge

import (
	"net/netip"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestWAFAddresses checks that a rule is left out if it needs a larger set of addresses than WAF takes.
func TestWAFAddresses(t *testing.T) {
	for n, want := range map[int]string{
		maxAddresses:     "",
		maxAddresses + 1: "ip: rule ip is left out: a set of WAF has at most 10000 addresses",
	} {
		w := &waf{handled: map[*limit.Limit]bool{}}
		r := rule{name: "ip", of: ceiling{sum: []*limit.Limit{{ID: "ip"}}}, outside: make([]netip.Prefix, n)}
		if w.add(r); want == "" && len(w.rules) != 1 || want != "" && (len(w.rules) != 0 || w.warnings[0].Text != want) {
			t.Errorf("%d addresses: %d rules, %v", n, len(w.rules), w.warnings)
		}
	}
}
