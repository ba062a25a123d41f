//go:build long

package integration

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// upgradeVariable is the environment variable with the path of the earlier binary. It has
// no prefix of the settings, because proxies refuse unknown variables with that.
const upgradeVariable = "UPGRADE_FROM"

// upgradeUnits is the capacity of the limits that upgrade tests exhaust, and
// upgradeSlots that of the limit of concurrency. roomyUnits is the capacity of the limit
// that each of their requests meets as well.
const (
	upgradeUnits = 600
	upgradeSlots = 20
	roomyUnits   = 1_000_000
)

// upgradeLimits are limits of one plan, each for requests of one op. Hardly any unit
// refills during a test.
var upgradeLimits = []struct{ op, fields string }{
	{"bucket", "by: [tenant, op], rate: 1/h, burst: 600"},
	{"sliding", "by: [tenant, op], rate: 600/366d, algorithm: sliding_window"},
	{"fixed", "by: [tenant, op], rate: 600/366d, algorithm: fixed_window"},
	{"calendar", "by: [tenant, op], rate: 600/month, algorithm: fixed_window, timezone: Europe/Berlin"},
	{"log", "by: [tenant, op], rate: 600/30d, algorithm: sliding_log"},
	{"region", "by: [tenant, region], rate: 600/366d, algorithm: fixed_window"},
	{"user", "by: [tenant, op, user], rate: 1/h, burst: 600"},
	{"levels", "by: [tenant], group: levels, rate: 600/366d, algorithm: sliding_window"},
	{"slots", "by: [tenant], algorithm: concurrency, slots: 20"},
}

// upgradeHead and upgradeShared are the parts of the file before and after these limits.
// A request of the op levels meets four limits in two hash slots.
const (
	upgradeHead = `
version: 1
default_plan: p
dimensions:
  region: {values: [eu, us]}
  user: {}
plans:
  p:
    - {id: roomy, by: [tenant], group: roomy, when: {op: "GET /*"}, rate: 1000000/366d, algorithm: fixed_window}
    - {id: levels-user, by: [tenant, user], when: {op: GET /levels}, rate: 1/h, burst: 900}
`
	upgradeShared = `
shared:
  - {id: address, by: [ip], when: {op: GET /address}, rate: 1/h, burst: 600}
  - {id: levels-address, by: [ip], when: {op: GET /levels}, rate: 1/h, burst: 900}
`
)

// upgradeFlags let a shared limit keep addresses for as long as its bucket takes to fill.
var upgradeFlags = append([]string{"--privacy-ip-max-ttl", "8760h"}, upgradeExact...)

// upgradeExact is exact with names of settings that earlier releases have too.
var upgradeExact = []string{"--decision-timeout", "5s", "--store-io-timeout", "10s", "--retry-jitter", "0"}

// earlierBinary returns the path of the binary of the earlier release.
func earlierBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv(upgradeVariable)
	if path == "" {
		t.Fatalf("%s names no binary of an earlier release: run make upgrade", upgradeVariable)
	}
	return path
}

// release is a proxy of one release.
type release struct {
	*proxy
	name string
	c    *redis.Client
}

// do sends a command and returns its reply, which must not be an error.
func (r release) do(t *testing.T, words ...any) any {
	t.Helper()
	reply, err := r.c.Do(t.Context(), words...).Result()
	if err != nil {
		t.Fatalf("%s release: %v: %v", r.name, words, err)
	}
	return reply
}

// decide sends a command whose reply is a decision of the store.
func (r release) decide(t *testing.T, words ...any) verdict {
	t.Helper()
	v, err := asVerdict(r.c.Do(t.Context(), words...))
	if err != nil || v.source != "store" {
		t.Fatalf("%s release: %v: %+v, %v", r.name, words, v, err)
	}
	return v
}

// upgrade is a store that proxies of two releases share.
type upgrade struct {
	old, next release
	limits    string   // the path of their limits file
	store     []string // the flags that name the store
	ops       []string // the ops of the limits that count requests
}

// TestLongUpgrade checks that a proxy of an earlier release and one of this release act
// as one on a store. Parts of the limits file and commands that the earlier release does
// not have are logged.
func TestLongUpgrade(t *testing.T) {
	path, ops, slots := writeUpgradeLimits(t, earlierBinary(t))
	stores := []struct {
		name  string
		start func(*testing.T) []string
	}{
		{"redis", func(t *testing.T) []string { return []string{redistest.Start(t).Addr} }},
		{"cluster", func(t *testing.T) []string { return redistest.StartCluster(t, 3, 0).Addrs() }},
	}
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			addrs := store.start(t)
			u := &upgrade{limits: path, ops: ops, store: []string{"--redis", strings.Join(addrs, ",")}}
			u.start(t)
			t.Run("counted", u.testCounted)
			t.Run("exact", u.testExact)
			t.Run("dialects", u.testDialects)
			t.Run("ids", u.testIDs)
			t.Run("reset", u.testReset)
			t.Run("agree", u.testAgree)
			if u.has(t, "RL.RESERVE") {
				t.Run("reservations", u.testReservations)
			}
			if u.has(t, "RL.ACQUIRE") && slots {
				t.Run("slots", u.testSlots)
			}
			if u.has(t, "RL.REFUND") {
				t.Run("refund", u.testRefund)
			}
			t.Run("replaced", u.testReplaced)
		})
	}
}

// writeUpgradeLimits writes the limits file, without the limits that the earlier release
// refuses. It returns the ops of the limits that count requests, and whether there is a
// limit of concurrency.
func writeUpgradeLimits(t *testing.T, earlier string) (path string, ops []string, slots bool) {
	t.Helper()
	text := upgradeHead
	for _, l := range upgradeLimits {
		line := fmt.Sprintf("    - {id: %s, when: {op: GET /%s}, %s}\n", l.op, l.op, l.fields)
		switch {
		case !takesLimit(t, earlier, upgradeHead, line):
			continue
		case l.op == "slots":
			slots = true
		default:
			ops = append(ops, l.op)
		}
		text += line
	}
	return writeLimits(t, text+upgradeShared), append(ops, "address"), slots
}

// takesLimit reports whether the earlier release accepts a limit, a line behind head, and
// logs it if not. The reason must be an algorithm that is younger than that release.
func takesLimit(t *testing.T, earlier, head, line string) bool {
	t.Helper()
	_, complaint, code := runCommand(t, nil, exec.Command(earlier, "limits", "lint", writeLimits(t, head+line)))
	if code == 0 {
		return true
	}
	for _, younger := range []string{"sliding_log", "concurrency"} {
		if strings.Contains(line, younger) && strings.Contains(complaint, "algorithm: \""+younger+"\"") {
			t.Logf("the earlier release has no %s, which is not compared", younger)
			return false
		}
	}
	t.Fatalf("the earlier release refuses a limit:\n%s%s", line, complaint)
	return false
}

// start starts a proxy of each release.
func (u *upgrade) start(t *testing.T) {
	t.Helper()
	flags := append(u.store, upgradeFlags...)
	begin := func(name, binary string) release {
		p := serveBinary(t, binary, u.limits, flags...)
		return release{p, name, p.client()}
	}
	u.old, u.next = begin("earlier", earlierBinary(t)), begin("new", binaries.release)
}

// has reports whether the earlier release has a command, and logs it if not.
func (u *upgrade) has(t *testing.T, command string) bool {
	t.Helper()
	info, ok := u.old.do(t, "COMMAND", "INFO", command).([]any)
	has := ok && len(info) == 1 && info[0] != nil
	if !has {
		t.Logf("the earlier release has no %s, which is not compared", command)
	}
	return has
}

// ways are the two orders of the releases.
func (u *upgrade) ways() [][2]release {
	return [][2]release{{u.old, u.next}, {u.next, u.old}}
}

// testCounted checks that each proxy counts the other one.
func (u *upgrade) testCounted(t *testing.T) {
	for _, r := range []release{u.old, u.next} {
		if !strings.Contains(r.get("/readyz"), `"instances"`) {
			t.Logf("the %s release counts no instances", r.name)
			return
		}
	}
	for _, r := range []release{u.old, u.next} {
		eventually(t, "both are counted", func() bool { return strings.Contains(r.get("/readyz"), `"instances":2,`) })
	}
}

// addressOf returns an address that only one tenant uses.
func addressOf(tenant string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tenant))
	return fmt.Sprintf("2001:db8:%x:%x::1", h.Sum32()>>16, h.Sum32()&0xffff)
}

// tenantWords returns a command about a tenant and op, with all dimensions of the limits.
func tenantWords(command, tenant, op string, cost int, more ...any) []any {
	words := []any{command, tenant, "GET /" + op, addressOf(tenant)}
	if cost > 0 {
		words = append(words, cost)
	}
	return append(append(words, "DIM", "user", "u1", "DIM", "region", "eu"), more...)
}

// left checks that both releases report so many units of a limit, and as many used of the
// limit that each request meets.
func (u *upgrade) left(t *testing.T, tenant, op string, want int64) {
	t.Helper()
	for _, r := range []release{u.old, u.next} {
		if v := r.decide(t, tenantWords("RL.PEEK", tenant, op, 1)...); v.id != op || !v.allowed || v.left != want-1 {
			t.Errorf("%s: %s release: %+v, want %d left", op, r.name, v, want-1)
		}
		want := roomyUnits - (upgradeUnits - want)
		if v := r.decide(t, tenantWords("RL.PEEK", tenant, "other", 1)...); v.id != "roomy" || v.left != want-1 {
			t.Errorf("%s: %s release: %+v, want %d left of roomy", op, r.name, v, want-1)
		}
	}
}

// clients returns clients of both releases, n of each, with a connection each.
func (u *upgrade) clients(t *testing.T, n int) (all []*redis.Client) {
	t.Helper()
	for range n {
		all = append(all, u.old.client(), u.next.client())
	}
	for _, c := range all {
		if err := c.Ping(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
