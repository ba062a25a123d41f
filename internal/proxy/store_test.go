package proxy

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
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
	for addr, want := range map[string][2]string{
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
		if got := out.String(); !strings.Contains(got, want[0]) || !strings.Contains(got, want[1]) || strings.Contains(got, "advice") != (addr == "127.0.0.1:1") {
			t.Errorf("%s: %s", addr, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestUnreachedReason: another error than that of the start has a line, and those of nodes in turn do not.
func TestUnreachedReason(t *testing.T) {
	now := time.Unix(1e9, 0)
	reason := unreachedReason{quiet: logthrottle.Throttle{Period: unreachedQuiet, Now: func() time.Time { return now }}}
	for i, row := range []struct {
		text string
		want bool
	}{{"refused", false}, {"refused", false}, {"", false}, {"login", true}, {"refused", false}, {"login", false}, {"login", false}} {
		var err error
		if row.text != "" {
			err = errors.New(row.text)
		}
		if got := reason.isAnother(err); got != row.want {
			t.Errorf("%d: %s: %t", i, row.text, got)
		}
	}
	if now = now.Add(unreachedQuiet); !reason.isAnother(errors.New("TLS")) {
		t.Error("no line after a while")
	}
}

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
