//go:build long

package integration

import "maps"

// tooMuch are the refusals of calls that are too many.
var tooMuch = []refusal{
	{"ProvisionedThroughputExceededException", "The level of configured provisioned throughput for the table was exceeded."},
	{"RequestLimitExceeded", "Throughput exceeds the current throughput limit for your account."},
}

// counts returns the calls since reset, by operation, and how many there were of all.
func (g *guard) counts() (calls map[string]int, all int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.calls {
		all += n
	}
	return maps.Clone(g.calls), all
}

// flood has forged messages received before those of a queue, as long as there are some.
func (g *guard) flood(forge func() (body string, ok bool)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forge = forge
}
