package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestReplicaRefused: a proxy that can reach only a replica does not start.
func TestReplicaRefused(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	master.Kill()
	out, errs, code := run(t, nil, "serve", "--listen", "127.0.0.1:0", "--admin", "", "--redis", replica.Addr)
	if code == 0 || !strings.Contains(errs, replica.Addr+": it is a replica, and decisions are never read from one: give the address of its master, "+master.Addr) {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if n := strings.Count(errs, "limitgate:"); n != 1 {
		t.Errorf("%d sentences, want one:\n%s", n, errs)
	}
}

const oneLimit = "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: RATE}]}}"

func limitOf(rate string) string { return strings.Replace(oneLimit, "RATE", rate, 1) }

// TestHotReload: a changed file is used at once. With an invalid one the proxy keeps the
// last good one and reports that in the log, in /readyz and in RL.CONFIG VERSION. SIGHUP
// and RL.CONFIG RELOAD load it again.
func TestHotReload(t *testing.T) {
	path := writeLimits(t, limitOf("1/h"))
	p := serve(t, path, exact...)
	c := p.client()
	ctx := context.Background()
	limit := func() int64 {
		v, err := check(c, "t", "-", "-")
		if err != nil {
			t.Fatal(err)
		}
		return v.limit
	}
	if n := limit(); n != 1 {
		t.Fatalf("limit %d, want 1", n)
	}
	replace(t, path, limitOf("7/h"))
	eventually(t, "the new limit", func() bool { return limit() == 7 })

	replace(t, path, limitOf("0/h"))
	eventually(t, "the complaint in the log", func() bool { return strings.Contains(p.output(), "a rate of zero admits nothing") })
	if n := limit(); n != 7 {
		t.Errorf("after a bad file the limit is %d, want 7", n)
	}
	if ready := p.get("/readyz"); !strings.Contains(ready, "stale") || !strings.Contains(ready, "rate of zero") {
		t.Errorf("/readyz does not report it: %s", ready)
	}
	version, err := c.Do(ctx, "RL.CONFIG", "VERSION").Result()
	if err != nil || !strings.Contains(asText(version), "rate of zero") {
		t.Errorf("RL.CONFIG VERSION does not report it: %v, %v", version, err)
	}
	if err := c.Do(ctx, "RL.CONFIG", "RELOAD").Err(); err == nil || !strings.Contains(err.Error(), "rate of zero") {
		t.Errorf("RL.CONFIG RELOAD: %v", err)
	}
	if m := p.get("/metrics"); !strings.Contains(m, "limitgate_config_stale 1") {
		t.Error("limitgate_config_stale is not 1")
	}

	// In place, and loaded by the signal whether or not the folder's watch has noticed
	// it.
	if err := os.WriteFile(path, []byte(limitOf("9/h")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the limit after SIGHUP", func() bool { return limit() == 9 })
	if ready := p.get("/readyz"); strings.Contains(ready, "stale") {
		t.Errorf("still stale: %s", ready)
	}
}

// replace replaces a file by renaming another one, as editors do.
func replace(t *testing.T, path, content string) {
	t.Helper()
	fresh := filepath.Join(filepath.Dir(path), ".fresh")
	if err := os.WriteFile(fresh, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

// asText flattens a reply.
func asText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		out := ""
		for _, x := range v {
			out += asText(x) + " "
		}
		return out
	case map[any]any:
		out := ""
		for k, x := range v {
			out += asText(k) + " " + asText(x) + " "
		}
		return out
	default:
		return ""
	}
}

// TestDrain: SIGTERM ends the proxy with exit code 0.
func TestDrain(t *testing.T) {
	p := serve(t, "", exact...)
	c := p.client()
	if _, err := check(c, "t", "-", "-"); err != nil {
		t.Fatal(err)
	}
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Errorf("it ended with %v:\n%s", err, p.output())
	}
	if !strings.Contains(p.output(), "msg=stopped") {
		t.Errorf("the log lacks it:\n%s", p.output())
	}
}

// TestStoreKilled: while the store is away every check gets a decision whose source names
// the component that made it. Afterwards the store decides again.
func TestStoreKilled(t *testing.T) {
	node := redistest.Start(t)
	limits := writeLimits(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: open, by: [tenant, op], when: {op: open}, rate: 5/h}
    - {id: closed, by: [tenant, op], when: {op: closed}, rate: 5/h, on_error: closed}
`)
	p := serve(t, limits, "--redis", node.Addr, "--decision-timeout", "200ms", "--retry-jitter", "0")
	c := p.client()
	ask := func(op string) verdict {
		v, err := check(c, "t", op, "-")
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		return v
	}
	if v := ask("open"); v.source != "store" {
		t.Fatalf("before: %+v", v)
	}
	node.Kill()
	for i := range 7 {
		if v := ask("open"); v.source != "backstop" || v.allowed != (i < 5) {
			t.Errorf("check %d without a store: %+v", i, v)
		}
	}
	if v := ask("closed"); v.allowed || v.source != "policy" || v.wait < 100 {
		t.Errorf("a limit that fails closed: %+v", v)
	}
	node.Restart()
	eventually(t, "the store decides again", func() bool { return ask("open").source == "store" })
	if m := p.get("/metrics"); !strings.Contains(m, `source="backstop"`) || !strings.Contains(m, "limitgate_store_errors_total") {
		t.Error("the outage is not in the metrics")
	}
}

// TestCheckCommand: limitgate check prints text or JSON, and reports the decision by its
// exit code.
func TestCheckCommand(t *testing.T) {
	p := serve(t, writeLimits(t, limitOf("1/h")), exact...)
	for _, step := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"t", "-", "-"}, "admitted by a: 0 of 1 left, full again in 1h0m0s (source store)\n", 0},
		{[]string{"t", "-", "-", "2"}, "denied by a, which never admits a cost of 2: it holds 1 unit (source store)\n", 2},
	} {
		out, errs, code := run(t, nil, append([]string{"check", "--addr", p.addr}, step.args...)...)
		if out != step.want || code != step.code {
			t.Errorf("check %v: exit %d, %q %q", step.args, code, out, errs)
		}
	}
	out, _, code := run(t, nil, "check", "--addr", p.addr, "--json", "u", "-", "-")
	if code != 0 || !strings.HasPrefix(out, `{"allowed":true,"limit":1,"remaining":0,`) {
		t.Errorf("--json: exit %d, %s", code, out)
	}
	_, errs, code := run(t, nil, "check", "--addr", "127.0.0.1:1", "t", "-", "-")
	if code != 1 || !strings.Contains(errs, "is limitgate serve running") {
		t.Errorf("no listener: exit %d, %s", code, errs)
	}
}

// TestRedisCLI: redis-cli works with the proxy in both protocols.
func TestRedisCLI(t *testing.T) {
	p := serve(t, writeLimits(t, limitOf("100/h")), exact...)
	host, port, _ := strings.Cut(p.addr, ":")
	for _, args := range [][]string{{}, {"-3"}} {
		bin := filepath.Join(os.Getenv("LIMITGATE_REDIS_BIN"), "redis-cli")
		if os.Getenv("LIMITGATE_REDIS_BIN") == "" {
			bin = "redis-cli"
		}
		out, err := exec.Command(bin, append(args, "-h", host, "-p", port, "RL.CHECK", "acme", "POST /v1/payments", "203.0.113.7", "1")...).CombinedOutput()
		lines := strings.Fields(string(out))
		if err != nil || len(lines) != 7 || lines[0] != "1" || lines[5] != "a" || lines[6] != "store" {
			t.Errorf("redis-cli %v: %v\n%s", args, err, out)
		}
	}
}

// TestGoRedisDefaults: go-redis connects with its default options, pipelines,
// and reads a map of RESP3.
func TestGoRedisDefaults(t *testing.T) {
	p := serve(t, writeLimits(t, limitOf("100/h")), exact...)
	c := redis.NewClient(&redis.Options{Addr: p.addr})
	defer func() { _ = c.Close() }()
	pipe := c.Pipeline()
	var cmds []*redis.Cmd
	for range 100 {
		cmds = append(cmds, pipe.Do(context.Background(), "RL.CHECK", "pipe", "-", "-"))
	}
	if _, err := pipe.Exec(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, cmd := range cmds {
		if v, err := asVerdict(cmd); err != nil || v.left != int64(99-i) {
			t.Errorf("reply %d: %+v, %v", i, v, err)
		}
	}
	if cmds, err := c.TxPipelined(context.Background(), func(tx redis.Pipeliner) error {
		tx.Do(context.Background(), "RL.CHECK", "tx", "-", "-")
		tx.Do(context.Background(), "RL.CHECK", "tx", "-", "-")
		return nil
	}); err != nil || len(cmds) != 2 {
		t.Errorf("a pipeline in MULTI and EXEC: %v, %v", cmds, err)
	}
	if m, err := c.Do(context.Background(), "RL.CONFIG", "VERSION").Result(); err != nil {
		t.Error(err)
	} else if _, ok := m.(map[any]any); !ok {
		t.Errorf("RL.CONFIG VERSION is a %T, want a map", m)
	}
}

// TestBreakerIsTold: RL.CONFIG SHARDS, /readyz and the metrics report a store that hangs.
// The replies of limits that fail closed contain the time until it is called again.
func TestBreakerIsTold(t *testing.T) {
	node := redistest.Start(t)
	limits := writeLimits(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: open, by: [tenant], rate: 1000000/h}
    - {id: closed, by: [tenant, op], when: {op: closed}, rate: 5/h, on_error: closed}
`)
	p := serve(t, limits, "--redis", node.Addr, "--breaker-cooldown", "10s", "--retry-jitter", "0")
	c := p.client()
	ask := func(op string) verdict {
		v, err := check(c, "t", op, "-")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	state := func() string {
		shards, err := c.Do(t.Context(), "RL.CONFIG", "SHARDS").Slice()
		if err != nil || len(shards) != 1 {
			t.Fatalf("RL.CONFIG SHARDS: %v %v", shards, err)
		}
		return fmt.Sprint(shards[0])
	}
	if got := state(); !strings.Contains(got, "closed") || !strings.Contains(got, node.Addr) {
		t.Errorf("before: %s", got)
	}
	node.Stop()
	eventually(t, "the breaker opens", func() bool {
		if v := ask("open"); !v.allowed {
			t.Fatalf("an open limit: %+v", v)
		}
		return strings.Contains(state(), "open")
	})
	if got := state(); !regexp.MustCompile(`failing_ms:? ?[1-9]`).MatchString(got) {
		t.Errorf("while the store fails: %s", got)
	}
	if v := ask("closed"); v.allowed || v.source != "policy" || v.wait < 1000 || v.wait > 12_001 {
		t.Errorf("a limit that fails closed: %+v, want a wait until the next probe", v)
	}
	if got := p.get("/readyz"); !strings.Contains(got, `"breaker":"open"`) || !strings.Contains(got, `"next_probe_ms":`) {
		t.Errorf("/readyz: %s", got)
	}
	if m := p.get("/metrics"); !strings.Contains(m, `limitgate_breaker_state{shard="`+node.Addr+`"} 1`) ||
		!strings.Contains(m, `limitgate_breaker_transitions_total{shard="`+node.Addr+`",state="open"} 1`) {
		t.Error("the breaker is not in the metrics")
	}
	node.Cont()
}

// TestForbidden: a proxy whose user has lost permissions on the store continues to
// decide, by its share, and reports on /readyz that it is not ready: only an operator can
// correct that.
func TestForbidden(t *testing.T) {
	node := redistest.Start(t)
	p := serve(t, writeLimits(t, limitOf("100/s")), "--redis", node.Addr)
	c := p.client()
	ready := func() bool { return strings.Contains(p.get("/readyz"), `"ready":true`) }
	if !ready() {
		t.Fatalf("a proxy is not ready: %s", p.get("/readyz"))
	}
	node.CLI(t, "ACL", "SETUSER", "default", "-evalsha")
	ask := func() verdict {
		v, err := check(c, "t", "-", "-")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := ask(); !v.allowed || v.source != "backstop" {
		t.Errorf("a check that the store forbids: %+v", v)
	}
	if r := p.get("/readyz"); !strings.Contains(r, `"ready":false`) || !strings.Contains(r, "NOPERM") {
		t.Errorf("/readyz: %s", r)
	}
	node.CLI(t, "ACL", "SETUSER", "default", "+evalsha")
	eventually(t, "the proxy is ready", func() bool { ask(); return ready() })
}
