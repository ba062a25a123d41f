package integration

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// clusterClient returns a client that treats the server at addr as a cluster.
func clusterClient(tb testing.TB, addr string) *redis.ClusterClient {
	tb.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, MaxRedirects: -1})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// nodes returns the addresses of the nodes that a cluster client knows.
func nodes(tb testing.TB, c *redis.ClusterClient) (addrs []string) {
	tb.Helper()
	var mu sync.Mutex // guards addrs
	if err := c.ForEachShard(context.Background(), func(_ context.Context, n *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		addrs = append(addrs, n.Options().Addr)
		return n.Ping(context.Background()).Err()
	}); err != nil {
		tb.Fatal(err)
	}
	return addrs
}

// TestClusterClient: a cluster client works unchanged, for tenants of any hash slot, and
// in pipelines.
func TestClusterClient(t *testing.T) {
	p := serve(t, writeLimits(t, limitOf("10/h")))
	c := clusterClient(t, p.addr)
	ctx := context.Background()
	tenants := []string{"a", "b", "c", "{x}y", "tenant 5"}
	for left := int64(9); left >= 8; left-- {
		for _, tenant := range tenants {
			if v, err := check(c, tenant, "-", "-"); err != nil || !v.allowed || v.left != left {
				t.Errorf("%s: %+v, %v", tenant, v, err)
			}
		}
	}
	pipe := c.Pipeline()
	var cmds []*redis.Cmd
	for _, tenant := range tenants {
		cmds = append(cmds, pipe.Do(ctx, "RL.CHECK", tenant, "-", "-"))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	for i, cmd := range cmds {
		if v, err := asVerdict(cmd); err != nil || v.left != 7 {
			t.Errorf("%s in a pipeline: %+v, %v", tenants[i], v, err)
		}
	}
	if got := nodes(t, c); len(got) != 1 || got[0] != p.addr {
		t.Errorf("nodes %v, want %s", got, p.addr)
	}
}

// forward accepts connections on an address of its own and passes them on to the address
// that to returns, like network address translation.
func forward(t *testing.T, to func() string) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to())
			if err != nil {
				_ = in.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				wg.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					_, _ = pair[0].Close(), pair[1].Close()
				})
			}
		}
	})
	return ln.Addr().String()
}

// TestClusterClientBehindTranslatedAddress: a cluster client connects to the address that
// it receives, which is an address of this side unless another is announced.
func TestClusterClientBehindTranslatedAddress(t *testing.T) {
	limits := writeLimits(t, limitOf("10/h"))
	var target atomic.Value // the address of a proxy
	front := forward(t, func() string { return target.Load().(string) })
	p := serve(t, limits)
	target.Store(p.addr)
	if got := nodes(t, clusterClient(t, front)); len(got) != 1 || got[0] != p.addr {
		t.Errorf("nodes %v, want %s", got, p.addr)
	}
	p = serve(t, limits, "--cluster-announce", front)
	target.Store(p.addr)
	c := clusterClient(t, front)
	if v, err := check(c, "t", "-", "-"); err != nil || !v.allowed {
		t.Errorf("%+v, %v", v, err)
	}
	if got := nodes(t, c); len(got) != 1 || got[0] != front {
		t.Errorf("nodes %v, want %s", got, front)
	}
}
