package commands_test

import (
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestInfoActivity: INFO counts decisions, and how long they took, for users who may read the limits
// of all tenants.
func TestInfoActivity(t *testing.T) {
	var took latency.Histogram
	took.Observe(3*time.Microsecond, 2)
	took.Observe(time.Second, 98)
	var times latency.Snapshot
	took.AddTo(&times)
	o := commands.Options{
		Limiter: limiter.New(limiter.Options{Store: memory.New(memory.Options{})}, &limit.Set{}), Limits: &fixedLimits{fail: true},
		Activity: func() commands.Activity {
			return commands.Activity{Decisions: 100, Denied: 7, WouldDeny: 3, Sources: map[string]int64{"store": 90, "backstop": 10}, Took: &times}
		},
	}
	const section = "# Limitgate\r\nlimitgate_limits_version:v1\r\nlimitgate_limits_stale:1\r\n" +
		"limitgate_decisions:100\r\nlimitgate_denied:7\r\nlimitgate_would_deny:3\r\n" +
		"limitgate_source_store:90\r\nlimitgate_source_lease:0\r\nlimitgate_source_cache:0\r\nlimitgate_source_backstop:10\r\nlimitgate_source_policy:0\r\n" +
		"limitgate_decision_percentiles_usec:p50=1000000.0,p99=1000000.0,p99.9=1000000.0\r\nlimitgate_decision_usec:3.2=2,1000000.0=98\r\n"
	ask := asking(t, commands.NewHandler(o))
	for _, words := range [][]string{{"INFO"}, {"INFO", "limitgate"}, {"info", "all"}} {
		if got := ask(words...); !strings.Contains(got, section) {
			t.Errorf("%s replies\n%s, without\n%s", words, got, section)
		}
	}
	if got := ask("INFO", "server"); strings.Contains(got, "limitgate_decisions") {
		t.Errorf("INFO server replies\n%s", got)
	}
	o.Users = testUsers(t)
	for user, may := range map[string]bool{"ops": true, "reader": true, "acme": false, "owner": false} {
		ask := asking(t, commands.NewHandler(o))
		ask("AUTH", user, user+"-secret")
		got := ask("INFO")
		if !strings.Contains(got, "# Limitgate\r\n") || strings.Contains(got, "limitgate_decisions:") != may {
			t.Errorf("INFO replies to %s\n%s", user, got)
		}
	}
}
