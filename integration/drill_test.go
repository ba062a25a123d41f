package integration

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/limitgate/limitgate/internal/drill"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// drillLimits let the store decide the checks of a drill.
const drillLimits = "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 1000/s}]}}"

// drillVerdict runs a drill, and returns its lines and its verdict.
func drillVerdict(t *testing.T, p *proxy, name, redis string) (lines []drill.Line, v drill.Verdict) {
	t.Helper()
	out, errs, code := run(t, nil, "drill", name, "--run", "--json", "--redis", redis, "--addr", p.addr, "--admin", p.admin,
		"--outage", "2s", "--within", "30s", "--rate", "50")
	objects := strings.Split(strings.TrimSpace(out), "\n")
	for i, object := range objects {
		var l drill.Line
		var to any = &l
		if i == len(objects)-1 {
			to = &v
		}
		if err := json.Unmarshal([]byte(object), to); err != nil {
			t.Fatalf("line %d: %v\n%s%s", i, err, out, errs)
		}
		lines = append(lines, l)
	}
	if code != 0 || !v.Passed || v.Errors > 0 || v.Back == nil {
		t.Errorf("exit %d:\n%s%s", code, out, errs)
	}
	return lines[:len(lines)-1], v
}

// sawOpen reports whether a line of an outage has an open breaker.
func sawOpen(lines []drill.Line) bool {
	for _, l := range lines {
		if l.Phase == drill.PhaseOutage && strings.Contains(l.State, "1 open") && l.Sources["backstop"] > 0 {
			return true
		}
	}
	return false
}

// TestDrillFailover checks that the drill promotes the replica of the tenant's master, and that the
// proxy finds it while every check gets a decision.
func TestDrillFailover(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1, "--cluster-require-full-coverage", "no")
	store := strings.Join(c.Addrs()[:2], ",")
	p := serve(t, writeLimits(t, drillLimits), "--redis", store, "--decision-timeout", "50ms")
	slot := func(key string) *redistest.Node { return c.NodeForSlot(t, int(limit.HashSlot([]byte(key)))) }
	slot(drill.MarkKey).CLI(t, "SET", drill.MarkKey, "yes", "EX", "600")
	former := slot(limit.TenantKey(drill.Tenant))
	lines, v := drillVerdict(t, p, "failover", store)
	if !sawOpen(lines) || v.Without < 1000 || v.Sources["store"] == 0 {
		t.Errorf("no outage: %+v\n%+v", v, lines)
	}
	if now := slot(limit.TenantKey(drill.Tenant)); now.Addr == former.Addr {
		t.Error("the master is the one before")
	}
	if log := p.output(); !strings.Contains(log, `"shard breaker open"`) || !strings.Contains(log, `"unresponsive master replaced"`) && !strings.Contains(log, `"shard breaker closed"`) {
		t.Errorf("without the lines of the drill:\n%s", log)
	}
}

// TestDrillFailOpen checks that the drill holds a single Redis back, and that the store decides
// again afterwards.
func TestDrillFailOpen(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	p := serve(t, writeLimits(t, drillLimits), "--redis", node.Addr, "--decision-timeout", "50ms")
	node.CLI(t, "SET", drill.MarkKey, "yes", "EX", "600")
	lines, v := drillVerdict(t, p, "fail-open", node.Addr)
	if !sawOpen(lines) || v.Without < 1000 || v.Sources["store"] == 0 {
		t.Errorf("no outage: %+v\n%+v", v, lines)
	}
}

// TestDrillRefused checks that a drill leaves stores alone that are not for tests, or that the
// limitgate does not use.
func TestDrillRefused(t *testing.T) {
	node, other := redistest.Start(t), redistest.Start(t)
	other.CLI(t, "SET", drill.MarkKey, "yes")
	p := serve(t, writeLimits(t, drillLimits), "--redis", node.Addr, "--decision-timeout", "1s")
	refused := func(name, redis, want string, more ...string) {
		t.Helper()
		out, errs, code := run(t, nil, append([]string{"drill", name, "--run", "--redis", redis, "--addr", p.addr}, more...)...)
		if code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, without %q:\n%s%s", name, code, want, out, errs)
		}
	}
	host, port, _ := net.SplitHostPort(node.Addr)
	refused("fail-open", node.Addr, drill.ErrNotMarked.Error()+": if it is one, redis-cli -c -h "+host+" -p "+port+" SET "+drill.MarkKey+" yes EX 3600 marks it for an hour")
	node.CLI(t, "SET", drill.MarkKey, "no")
	refused("fail-open", node.Addr, drill.ErrNotMarked.Error())
	refused("fail-open", other.Addr, "the limitgate at "+p.addr+" uses the masters "+node.Addr)
	served := p.addr
	p.addr = serve(t, writeLimits(t, drillLimits)).addr
	refused("fail-open", other.Addr, "the limitgate at "+p.addr+" has its buckets in memory, and --redis leads to "+other.Addr+": serve by --redis")
	p.addr = served
	node.CLI(t, "SET", drill.MarkKey, "yes")
	refused("failover", node.Addr, "failover needs a Redis Cluster")
	refused("fail-open", node.Addr, "no outage is made: --admin "+p.addr+" does not answer as the admin address of a limitgate: name that one, or leave out --admin", "--admin", p.addr)
	if stats := node.CLI(t, "INFO", "commandstats"); strings.Contains(stats, "cmdstat_client|pause") {
		t.Errorf("the store was paused:\n%s", stats)
	}
	if v, err := check(p.client(), drill.Tenant, "-", "-"); err != nil || v.source != "store" {
		t.Errorf("%+v %v", v, err)
	}
}

// TestDrillInterrupted checks that an interrupt ends the outage at once.
func TestDrillInterrupted(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	p := serve(t, writeLimits(t, drillLimits), "--redis", node.Addr, "--decision-timeout", "50ms")
	node.CLI(t, "SET", drill.MarkKey, "yes", "EX", "600")
	cmd := exec.Command(binaries.release, "drill", "fail-open", "--run", "--redis", node.Addr, "--addr", p.addr, "--outage", "1m")
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client := p.client()
	source := func() string {
		v, err := check(client, "t", "-", "-")
		if err != nil {
			t.Fatal(err)
		}
		return v.source
	}
	eventually(t, "the outage begins", func() bool { return source() == "backstop" })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(errs.String(), "interrupted: the outage is ended") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	eventually(t, "the store decides", func() bool { return source() == "store" })
	_ = p.stop(syscall.SIGTERM)
}
