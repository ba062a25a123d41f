//go:build long

package integration

import "maps"

// tooMuch are the refusals of throttled calls.
var tooMuch = []refusal{
	{"ProvisionedThroughputExceededException", "The level of configured provisioned throughput for the table was exceeded."},
	{"RequestLimitExceeded", "Throughput exceeds the current throughput limit for your account."},
}

// counts returns the calls since reset by operation, and their total.
func (g *guard) counts() (calls map[string]int, all int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.calls {
		all += n
	}
	return maps.Clone(g.calls), all
}

// flood makes forged messages arrive before those of a queue, as long as forge returns
// some.
func (g *guard) flood(forge func() (body string, ok bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forge = forge
}
