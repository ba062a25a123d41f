package redistest

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Restrict reduces the default user to the given rights, and returns a client of a user
// with all rights.
func Restrict(tb testing.TB, n *Node, rights ...string) *redis.Client {
	tb.Helper()
	n.CLI(tb, "ACL", "SETUSER", "admin", "on", ">admin", "~*", "&*", "+@all")
	if got := n.CLI(tb, append([]string{"ACL", "SETUSER", "default", "reset", "on", "nopass"}, rights...)...); got != "OK" {
		tb.Fatalf("restrict user: %s", got)
	}
	admin := redis.NewClient(&redis.Options{Addr: n.Addr, Username: "admin", Password: "admin", MaxRetries: -1})
	tb.Cleanup(func() { _ = admin.Close() })
	if err := errors.Join(admin.ConfigResetStat(tb.Context()).Err(), admin.ACLLogReset(tb.Context()).Err()); err != nil {
		tb.Fatal(err)
	}
	return admin
}

// NoRefusals fails if since Restrict a command was refused for lack of rights, or a command
// for administrators was sent, except by the test itself.
func NoRefusals(tb testing.TB, admin *redis.Client) {
	tb.Helper()
	refused, err := admin.ACLLog(tb.Context(), 10).Result()
	if err != nil {
		tb.Fatal(err)
	}
	for _, r := range refused {
		tb.Errorf("refused %s: %s in %s", r.Reason, r.Object, r.Context)
	}
	stats, err := admin.Info(tb.Context(), "commandstats").Result()
	if err != nil || !strings.Contains(stats, "cmdstat_evalsha") {
		tb.Fatalf("%v: %s", err, stats)
	}
	for line := range strings.Lines(stats) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		if strings.HasPrefix(name, "debug") || strings.HasPrefix(name, "config") && name != "config|resetstat" {
			tb.Errorf("sent %s", line)
		}
	}
}
