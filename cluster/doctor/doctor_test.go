package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
)

// inspect inspects a store with timeouts for a loaded machine.
func inspect(tb testing.TB, addrs ...string) *Report {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	r, err := Inspect(ctx, Options{Store: cluster.Options{Addrs: addrs, DialTimeout: 5 * time.Second, IOTimeout: 5 * time.Second}, DecisionTimeout: time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// text formats the report for failure messages.
func (r *Report) text() string {
	masters, _ := json.Marshal(r.Masters)
	text := fmt.Sprintf("%s, mode %s, masters %s\n", r.Kind, r.Mode, masters)
	for _, f := range r.Findings {
		text += fmt.Sprintln(f.Severity, f.Check, f.Nodes, f.Text)
	}
	return text
}

// expect fails unless the report has a finding of a check with this severity, whose text
// contains part.
func (r *Report) expect(tb testing.TB, severity Severity, check, part string) {
	tb.Helper()
	for _, f := range r.Findings {
		if f.Severity == severity && f.Check == check && strings.Contains(f.Text, part) {
			return
		}
	}
	tb.Errorf("no %s %s with %q in %s", severity, check, part, r.text())
}

// noProbeKeys fails if a key is left on the masters.
func noProbeKeys(tb testing.TB, nodes ...*redistest.Node) {
	tb.Helper()
	for _, n := range nodes {
		if keys := n.CLI(tb, "KEYS", "lg:probe:*"); keys != "" {
			tb.Errorf("left behind on %s: %s", n.Addr, keys)
		}
	}
}

// openStore opens and runs a store that agrees on a secret.
func openStore(tb testing.TB, addr string) *cluster.Store {
	tb.Helper()
	adopted := 0
	s, err := cluster.Open(tb.Context(), cluster.Options{
		Addrs: []string{addr}, DialTimeout: 5 * time.Second, IOTimeout: 5 * time.Second,
		Secret: []byte(strings.Repeat("secret ", 8)), Adopt: func([]byte) { adopted++ },
	})
	if err != nil {
		tb.Fatal(err)
	}
	if adopted != 1 {
		tb.Errorf("%d secrets were adopted", adopted)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
		_ = s.Close()
	})
	return s
}

func TestInspectSingle(t *testing.T) {
	node := redistest.Start(t)
	r := inspect(t, node.Addr)
	if r.Verdict != SeverityWarn || r.Kind != "redis" || r.Mode != cluster.ModeSingle || len(r.Masters) != 1 {
		t.Fatalf("got %s", r.text())
	}
	r.expect(t, SeverityNote, "tls", "not encrypted")
	r.expect(t, SeverityNote, "replicas", "no replica")
	r.expect(t, SeverityWarn, "persistence", "appendonly yes")
	if n := node.CLI(t, "DBSIZE"); n != "0" {
		t.Errorf("%s keys are left behind: %s", n, node.CLI(t, "KEYS", "*"))
	}
}

// TestInspectCluster checks that every master is found, measured and left unchanged,
// whichever node comes first, and that the mode is the one that a store uses.
func TestInspectCluster(t *testing.T) {
	c := redistest.SharedCluster(t)
	server := "Redis"
	if strings.Contains(c.Nodes[0].CLI(t, "INFO", "server"), "valkey_version:") {
		server = "Valkey"
	}
	for _, addrs := range [][]string{c.Addrs(), {c.Nodes[4].Addr}} {
		r := inspect(t, addrs...)
		if r.Verdict != SeverityWarn || r.Kind != "cluster" || r.Mode != cluster.ModeShardWide || len(r.Masters) != 3 {
			t.Fatalf("got %s", r.text())
		}
		all := Probes{Done, Done, Done, Done, Done, Done, Done, Done, Done}
		for i, m := range r.Masters {
			if want := []string{"0-5460", "5461-10921", "10922-16383"}[i]; m.Slots != want || len(m.Replicas) != 1 || m.Replicas[0] != c.Nodes[3+i].Addr {
				t.Errorf("%s has slots %s and replicas %s", m.Addr, m.Slots, m.Replicas)
			}
			if m.Probes != all || m.Server != server || m.Version == "" || m.MemoryPolicy != "noeviction" || m.AOF == nil || m.ClusterState != "ok" {
				t.Errorf("got %s", r.text())
			}
			if d := m.Decision; d.Calls != rounds*(aloneCalls+batchSize) || d.Batched <= 0 || d.Alone < d.Batched {
				t.Errorf("decisions: %+v", d)
			}
			if rt := m.RoundTrip; rt.Exchanges != pings || rt.Min <= 0 || rt.Median < rt.Min || rt.P99 < rt.Median {
				t.Errorf("round trip: %+v", rt)
			}
			if m.Clock.Within <= 0 || m.Clock.Offset.Abs() > time.Second {
				t.Errorf("clock: %+v", m.Clock)
			}
		}
		r.expect(t, SeverityNote, "coverage", "CONFIG GET cluster-require-full-coverage")
	}
	noProbeKeys(t, c.Masters(t)...)
}

// TestInspectDeclaredKeys checks the inspection of a store with DeclaredKeys.
func TestInspectDeclaredKeys(t *testing.T) {
	c := redistest.SharedCluster(t)
	r, err := Inspect(t.Context(), Options{Store: cluster.Options{Addrs: c.Addrs(), DeclaredKeys: true}, DecisionTimeout: time.Second})
	if err != nil || r.Mode != cluster.ModePerSlot || r.Masters[0].Probes.Shard != "" || r.Masters[0].Probes.Batch != Done {
		t.Errorf("got %s, %v", r.text(), err)
	}
	r.expect(t, SeverityOK, "mode", "per-slot")
	noProbeKeys(t, c.Masters(t)...)
}

// TestInspectWithTheRightsItNames checks that the rights in a report are enough for an
// inspection and for a store. They include neither CONFIG nor DEBUG nor any other right of
// an administrator except ROLE and INFO.
func TestInspectWithTheRightsItNames(t *testing.T) {
	for name, node := range map[string]*redistest.Node{
		"single": redistest.Start(t), "cluster": redistest.StartCluster(t, 1, 0).Nodes[0],
	} {
		t.Run(name, func(t *testing.T) {
			admin := redistest.Restrict(t, node, strings.Fields(cluster.Rights)...)
			r := inspect(t, node.Addr)
			if r.Verdict != SeverityWarn || r.Masters[0].Decision.Calls == 0 || r.Masters[0].Probes.Remove != Done {
				t.Errorf("got %s", r.text())
			}
			redistest.NoRefusals(t, admin)
			if n, err := admin.DBSize(t.Context()).Result(); err != nil || n != 0 {
				t.Errorf("%d keys are left behind, %v", n, err)
			}
			s := openStore(t, node.Addr)
			storetest.Run(t, s)
			h := s.NewHeartbeat()
			if n, err := h.Beat(t.Context()); n != 1 || err != nil {
				t.Errorf("%d instances, %v", n, err)
			}
			if err := h.Leave(t.Context()); err != nil {
				t.Error(err)
			}
			if err := s.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			redistest.NoRefusals(t, admin)
		})
	}
}

// TestInspectRefusals checks that each missing right is reported, together with the needed
// rights, and that everything else is examined nevertheless.
func TestInspectRefusals(t *testing.T) {
	c := redistest.StartCluster(t, 1, 0)
	node := c.Nodes[0]
	for _, row := range []struct {
		without  string // one of the rights
		severity Severity
		check    string
		text     string
	}{
		{"+role", SeverityFail, "master", "NOPERM"},
		{"+info", SeverityFail, "address", "NOPERM"},
		{"+cluster|slots", SeverityFail, "address", "NOPERM"},
		{"+cluster|info", SeverityNote, "coverage", "cannot be seen"},
		{"+script|load", SeverityFail, "master", "NOPERM"},
		{"+evalsha", SeverityFail, "evalsha", "allow SCRIPT LOAD and EVALSHA (NOPERM"},
		{"~lg:*", SeverityFail, "evalsha", "may not use all keys that begin with lg:"},
		{"+set", SeverityFail, "write", "the script cannot write"},
		{"+hget", SeverityFail, "rights", "the user lacks +hget"},
		{"+pexpireat", SeverityFail, "rights", "the user lacks +pexpireat"},
		{"+setrange", SeverityFail, "rights", "the user lacks +setrange"},
		{"+mget", SeverityWarn, "rights", "the user lacks +mget"},
		{"+getex", SeverityFail, "secret", "NOPERM"},
		{"+hlen", SeverityWarn, "instances", "give their number by --instances ("},
		{"+hgetall", SeverityWarn, "instances", "give their number by --instances ("},
		{"+unlink", SeverityWarn, "removal", "expires within seconds"},
		{"+ping", SeverityWarn, "roundtrip", "could not be measured"},
	} {
		t.Run(row.without, func(t *testing.T) {
			var rights []string
			for _, right := range strings.Fields(cluster.Rights) {
				if right != row.without {
					rights = append(rights, right)
				}
			}
			admin := redistest.Restrict(t, node, rights...)
			r := inspect(t, node.Addr)
			r.expect(t, row.severity, row.check, row.text)
			if (row.severity == SeverityFail) != (r.Verdict == SeverityFail) {
				t.Errorf("the verdict is %s", r.text())
			}
			if row.severity == SeverityFail || row.check == "removal" {
				r.expect(t, SeverityNote, "rights", "+evalsha")
			}
			// Keys that could not be removed expire.
			redistest.Eventually(t, 20*time.Second, "no key is left", func() bool { return admin.DBSize(t.Context()).Val() == 0 })
			if err := admin.Do(t.Context(), "ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all").Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestInspectNamesEachRight checks that each right that is missing is named, and that the probes of
// rights leave nothing behind.
func TestInspectNamesEachRight(t *testing.T) {
	all := strings.Fields(cluster.Rights)
	for name, node := range map[string]*redistest.Node{
		"single": redistest.Start(t), "cluster": redistest.StartCluster(t, 1, 0).Nodes[0],
	} {
		t.Run(name, func(t *testing.T) {
			for _, right := range all[1:] {
				if rightProbes[right] == "" || name == "single" && slices.Contains(clusterRights, right) {
					continue
				}
				admin := redistest.Restrict(t, node, slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == right })...)
				r := inspect(t, node.Addr)
				reported := len(r.Masters) > 0 && slices.Equal(r.Masters[0].MissingRights, []string{right})
				unreachable := strings.Contains(r.text(), "'"+strings.TrimPrefix(right, "+")+"'") && r.Verdict == SeverityFail
				if !reported && !unreachable {
					t.Errorf("without %s: %s", right, r.text())
				}
				redistest.Eventually(t, 20*time.Second, "no key is left", func() bool { return admin.DBSize(t.Context()).Val() == 0 })
				if err := admin.Do(t.Context(), "ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all").Err(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	for _, right := range all[1:] {
		if rightProbes[right] == "" && right != "+script|load" {
			t.Errorf("nothing examines %s", right)
		}
	}
}

// TestInspectRefusedMode checks the mode and its reason in the report if undeclared keys
// are refused: it is the mode that a store falls back to.
func TestInspectRefusedMode(t *testing.T) {
	node := redistest.StartCluster(t, 1, 0).Nodes[0]
	// The connection's probe of undeclared keys is refused because of its keys; those of an
	// inspection have a dot in their tags.
	redistest.Restrict(t, node, append([]string{"~lg:probe:{*.*}*"}, strings.Fields(cluster.Rights)[1:]...)...)
	r := inspect(t, node.Addr)
	if m := r.Masters[0]; r.Mode != cluster.ModePerSlot || m.Probes.Shard == Done || m.Probes.Batch != Done {
		t.Errorf("got %s", r.text())
	}
	r.expect(t, SeverityNote, "mode", "because scripts may not use keys that they do not declare (ERR ")
	r.expect(t, SeverityNote, "rights", "~lg:*")
}

// TestInspectSettings checks that settings which make a store lose data or refuse calls are
// reported.
func TestInspectSettings(t *testing.T) {
	t.Run("kept", func(t *testing.T) {
		node := redistest.Start(t, "--appendonly", "yes", "--maxmemory-policy", "allkeys-lru")
		redistest.StartReplica(t, node)
		r := inspect(t, node.Addr)
		r.expect(t, SeverityOK, "persistence", "AOF")
		r.expect(t, SeverityOK, "replicas", "copied")
		r.expect(t, SeverityWarn, "memory", "maxmemory-policy allkeys-lru")
	})
	t.Run("refused", func(t *testing.T) {
		r := inspect(t, redistest.Start(t, "--min-replicas-to-write", "1").Addr)
		r.expect(t, SeverityFail, "writes", "it refuses writes, so the backstop decides here: fewer replicas are connected to it than its min-replicas-to-write: connect one, or lower that (")
		r.expectOneRefusal(t, "NOREPLICAS")
	})
	t.Run("password", func(t *testing.T) {
		r := inspect(t, redistest.Start(t, "--requirepass", "secret").Addr)
		r.expect(t, SeverityFail, "address", "requires a password")
	})
}

// TestInspectCoverage checks that cluster-require-full-coverage is derived from the state
// of a node while a slot is missing.
func TestInspectCoverage(t *testing.T) {
	for setting, want := range map[string]Severity{"yes": SeverityWarn, "no": SeverityOK} {
		t.Run(setting, func(t *testing.T) {
			node := redistest.StartCluster(t, 1, 0, "--cluster-require-full-coverage", setting).Nodes[0]
			node.CLI(t, "CLUSTER", "DELSLOTS", "7")
			state := map[string]string{"yes": "cluster_state:fail", "no": "cluster_state:ok"}[setting]
			redistest.Eventually(t, 20*time.Second, state, func() bool { return strings.Contains(node.CLI(t, "CLUSTER", "INFO"), state) })
			r := inspect(t, node.Addr)
			r.expect(t, want, "coverage", "slots are missing")
			r.expect(t, SeverityFail, "store", "1 of 16384 slots have no master")
			if got := r.Masters[0]; got.FullCoverage != setting || got.Slots != "0-6 8-16383" {
				t.Errorf("got %s", r.text())
			}
		})
	}
}

// TestInspectFull checks that a master without memory left is reported as full, and not as one that lacks
// rights.
func TestInspectFull(t *testing.T) {
	node := redistest.Start(t, "--maxmemory-policy", "noeviction")
	node.CLI(t, "CONFIG", "SET", "maxmemory", "1")
	r := inspect(t, node.Addr)
	r.expect(t, SeverityFail, "writes", "it refuses writes, so the backstop decides here: it has no memory left: raise its maxmemory, or move other data elsewhere (")
	r.expectOneRefusal(t, "OOM")
}

// expectOneRefusal checks that one finding has a reply of Redis.
func (r *Report) expectOneRefusal(t *testing.T, reply string) {
	t.Helper()
	found := 0
	for _, f := range r.Findings {
		if strings.Contains(f.Text, reply) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d findings have %s:\n%s", found, reply, r.text())
	}
}

// TestInspectLostMasters checks that a problem of one master does not hide the findings of
// the others.
func TestInspectLostMasters(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0, "--cluster-node-timeout", "60000")
	c.Nodes[0].Kill()
	c.Nodes[1].Stop()
	began := time.Now()
	r, err := Inspect(t.Context(), Options{Store: cluster.Options{Addrs: c.Addrs(), DialTimeout: time.Second, IOTimeout: 5 * time.Second}})
	if err != nil || r.Verdict != SeverityFail || len(r.Masters) != 3 {
		t.Fatalf("got %s, %v", r.text(), err)
	}
	r.expect(t, SeverityWarn, "store", "a cluster of 3 masters, 2 of which cannot be used")
	r.expect(t, SeverityFail, "master", "connection refused: start it again")
	r.expect(t, SeverityFail, "master", "it does not answer in time")
	if r.Masters[2].Decision.Calls == 0 || r.Mode != cluster.ModeShardWide {
		t.Errorf("the third is not examined: %s", r.text())
	}
	t.Logf("it took %s", time.Since(began))
}

// TestInspectInterrupted checks that an inspection ends with its context, reports that, and
// leaves no key behind.
func TestInspectInterrupted(t *testing.T) {
	node := redistest.Start(t)
	for _, row := range []struct {
		command string
		times   int
	}{{"GETEX", 1}, {"TIME", 1}, {"PING", 3}, {"EVALSHA", 40}, {"EVALSHA", 200}, {"UNLINK", 1}} {
		t.Run(fmt.Sprint(row.command, row.times), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			addr := relay(t, node.Addr, row.command, row.times, cancel)
			r, err := Inspect(ctx, Options{Store: cluster.Options{Addrs: []string{addr}, DialTimeout: 5 * time.Second, IOTimeout: 5 * time.Second}})
			if err != nil {
				t.Fatal(err)
			}
			r.expect(t, SeverityFail, "time", "interrupted")
			if n := node.CLI(t, "DBSIZE"); n != "0" {
				t.Errorf("%s keys are left behind: %s", n, node.CLI(t, "KEYS", "*"))
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	r, err := Inspect(ctx, Options{Store: cluster.Options{Addrs: []string{node.Addr}}})
	if err != nil || r.Verdict != SeverityFail {
		t.Errorf("got %s, %v", r.text(), err)
	}
	r.expect(t, SeverityFail, "time", "time ran out")
}

func TestInspectRefusesNoAddress(t *testing.T) {
	if _, err := Inspect(t.Context(), Options{}); err == nil {
		t.Error("no address is accepted")
	}
}

// TestInspectCPU: the first master is measured with each number of buckets, on keys that are
// removed.
func TestInspectCPU(t *testing.T) {
	c := redistest.SharedCluster(t)
	c.FlushAll(t)
	report, err := Inspect(t.Context(), Options{Store: cluster.Options{Addrs: c.Addrs(), DialTimeout: 5 * time.Second, IOTimeout: 5 * time.Second}, DecisionTimeout: time.Second, MeasureCPU: true})
	if err != nil {
		t.Fatal(err)
	}
	got := report.Masters[0].CPU
	if len(got) != 3 || report.Masters[0].CPUError != "" || report.Masters[1].CPU != nil {
		t.Fatalf("got %+v, %q", got, report.Masters[0].CPUError)
	}
	for i, n := range []int{1, 2, 4} {
		if p := got[i]; p.Buckets != n || p.Calls%p.PerScript != 0 || p.CPU <= 0 || time.Duration(p.Calls)*p.CPU > 10*time.Second {
			t.Errorf("%+v, want %d buckets", p, n)
		}
	}
	for _, node := range c.Nodes {
		if keys := node.CLI(t, "KEYS", "*"); strings.TrimSpace(keys) != "" {
			t.Errorf("keys are left: %s", keys)
		}
	}
}
