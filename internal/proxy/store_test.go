package proxy

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/redistest"
)

// TestWhyWithout: a start without a store says whether the store is full or away.
func TestWhyWithout(t *testing.T) {
	full := redistest.Start(t)
	full.CLI(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	full.CLI(t, "CONFIG", "SET", "maxmemory", "1")
	for addr, want := range map[string]string{full.Addr: "it has no memory left: ", "127.0.0.1:1": "it cannot be reached"} {
		s, err := cluster.Open(t.Context(), cluster.Options{Addrs: []string{addr}, StartWithout: true, Secret: []byte(strings.Repeat("s", 32))})
		if err != nil {
			t.Fatal(err)
		}
		if got := whyWithout(s.Ping(t.Context())); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", addr, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
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
