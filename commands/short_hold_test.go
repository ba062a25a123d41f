package commands_test

import (
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
)

// TestShortHold: a TTL that was meant in seconds is reported.
func TestShortHold(t *testing.T) {
	var reported []time.Duration
	ask := asking(t, commands.NewHandler(commands.Options{
		Limiter: onMemory(t), ShortHold: func(ttl time.Duration) { reported = append(reported, ttl) },
	}))
	for command, want := range map[string]time.Duration{
		"RL.RESERVE t - - 5 TTL 500":         0,
		"RL.RESERVE t - - 5":                 0,
		"RL.RESERVE t - - 5 TTL 60":          60 * time.Millisecond,
		"RL.ACQUIRE t - - TTL 30":            30 * time.Millisecond,
		"RL.ACQUIRE t - - TTL 600":           600 * time.Millisecond,
		"RL.ACQUIRE t - - TTL 3600":          3600 * time.Millisecond,
		"RL.ACQUIRE t - - TTL 3000":          0,
		"RL.ACQUIRE t - - TTL x":             0,
		"RL.ACQUIRE t - - TTL 30 BOGUS 1":    0,
		"RL.RESERVE t - - 5 TTL 30 DIM a":    0,
		"RL.RENEW ID x TENANT t TTL 499":     499 * time.Millisecond,
		"RL.RENEW ID x TENANT t TTL 3600000": 0,
	} {
		reported = nil
		reply := ask(strings.Fields(command)...)
		if len(reported) > 1 || (len(reported) == 1) != (want != 0) || want != 0 && reported[0] != want {
			t.Errorf("%s: %q, reported %s", command, reply, reported)
		}
	}
}
