package proxy

import (
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/logthrottle"
	"github.com/limitgate/limitgate/internal/redistest"
)

// TestWarnWithout: a start without a store says why the store refuses writes, or that it is away and whether more addresses would help;
// until it has a secret, the reason stays.
func TestWarnWithout(t *testing.T) {
	full := redistest.Start(t)
	full.CLI(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	full.CLI(t, "CONFIG", "SET", "maxmemory", "1")
	alone := redistest.Start(t, "--min-replicas-to-write", "1")
	part := redistest.Start(t, "--cluster-enabled", "yes")
	part.CLI(t, "CLUSTER", "ADDSLOTSRANGE", "0", "16382")
	few := redistest.Start(t, "--cluster-enabled", "yes")
	few.CLI(t, "CLUSTER", "ADDSLOTS", "1")
	none := redistest.Start(t, "--cluster-enabled", "yes")
	for addr, want := range map[string][2]string{
		part.Addr:     {`reason="its nodes answer, and the cluster refuses calls"`, "; limitgate doctor shows which masters and slots"},
		few.Addr:      {`reason="its nodes answer, and hash slots have no master"`, "no master serves hash slot"},
		none.Addr:     {`reason="it cannot be reached"`, "no node of the cluster owns slots yet"},
		full.Addr:     {`reason="it has no memory left: `, `OOM `},
		alone.Addr:    {`reason="fewer replicas are connected to it than its min-replicas-to-write: connect one, or lower that"`, "NOREPLICAS "},
		"127.0.0.1:1": {`reason="it cannot be reached"`, `advice="if it is a node of a Redis Cluster, name several nodes`},
	} {
		var out strings.Builder
		opts := cluster.Options{Addrs: []string{addr}, StartWithout: true, Secret: []byte(strings.Repeat("s", 32))}
		s, err := cluster.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		p := &Proxy{settings: &config.Settings{}, cluster: s, storeOptions: opts, log: slog.New(slog.NewTextHandler(&out, nil))}
		p.warnWithout(t.Context())
		if got := out.String(); !strings.Contains(got, want[0]) || !strings.Contains(got, want[1]) || strings.Contains(got, cluster.OtherNodes) != (addr == "127.0.0.1:1") {
			t.Errorf("%s: %s", addr, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestUnreachedReason: an error of another cause than that of the start has a line at the second look, also if others came between them or
// lines were held back, and one of another text alone has none.
func TestUnreachedReason(t *testing.T) {
	now := time.Unix(1e9, 0)
	reason := unreachedReason{quiet: logthrottle.Throttle{Period: unreachedQuiet, Now: func() time.Time { return now }}}
	refused, closed, loading := syscall.ECONNREFUSED, io.EOF, redisError("LOADING Redis is loading the dataset in memory")
	login := redisError("WRONGPASS invalid username-password pair or user is disabled.")
	for i, row := range []struct {
		err  error
		want bool
	}{{refused, false}, {closed, false}, {refused, false}, {nil, false}, {loading, false}, {refused, false}, {login, false}, {login, true}, {login, false}, {loading, false}, {loading, false}} {
		if got := reason.isAnother(row.err); got != row.want {
			t.Errorf("%d: %v: %t", i, row.err, got)
		}
	}
	if now = now.Add(unreachedQuiet); !reason.isAnother(loading) || reason.isAnother(loading) {
		t.Error("not one line after a while")
	}
	name := &net.DNSError{Err: "no such host", Name: "redis-1"}
	now = now.Add(unreachedQuiet)
	if reason.isAnother(closed) || reason.isAnother(name) || !reason.isAnother(closed) {
		t.Error("no line about a node that closes connections, beside one without an address")
	}
	now = now.Add(unreachedQuiet)
	for i, row := range []struct {
		err  error
		want bool
	}{{io.ErrUnexpectedEOF, false}, {io.EOF, false}, {name, false}, {name, true}} {
		if got := reason.isAnother(row.err); got != row.want {
			t.Errorf("behind closed connections, %d: %t", i, got)
		}
	}
}

// redisError is an error reply.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// TestWarnOfAddresses: an address that leads to another store than the cluster's is logged at the start.
func TestWarnOfAddresses(t *testing.T) {
	nodes, other := redistest.SharedCluster(t).Addrs(), redistest.Start(t).Addr
	for _, row := range []struct {
		addrs []string
		want  string
	}{
		{nodes, ""},
		{append(slices.Clone(nodes), other), "others=" + other},
		{[]string{other, nodes[0]}, "only one of its addresses is used"},
	} {
		var out strings.Builder
		opts := cluster.Options{Addrs: row.addrs, Secret: []byte(strings.Repeat("s", 32))}
		s, err := cluster.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		settings := &config.Settings{}
		settings.Redis.Addrs = row.addrs
		p := &Proxy{settings: settings, cluster: s, storeOptions: opts, log: slog.New(slog.NewTextHandler(&out, nil))}
		p.warnOfAddresses(t.Context())
		if got := out.String(); !strings.Contains(got, row.want) || (row.want == "") != (got == "") {
			t.Errorf("%s: %s", row.addrs, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
