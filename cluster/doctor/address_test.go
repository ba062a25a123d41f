package doctor

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/redistest"
)

// TestInspectUnusable checks that an unusable address is reported with its problem.
func TestInspectUnusable(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	hung := redistest.Start(t)
	hung.Stop()
	web := httptest.NewServer(nil)
	defer web.Close()
	tls := httptest.NewUnstartedServer(nil)
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	for name, row := range map[string]struct{ addr, text string }{
		"nobody":           {"127.0.0.1:1", "connection refused"},
		"no name":          {"nowhere.invalid:6379", "its name is not known"},
		"a replica":        {replica.Addr, "it is a replica, and decisions are never read from one: give the address of its master, " + master.Addr},
		"no slots":         {redistest.Start(t, "--cluster-enabled", "yes").Addr, "run redis-cli --cluster create first"},
		"hung":             {hung.Addr, "does not answer"},
		"a web server":     {strings.TrimPrefix(web.URL, "http://"), "it is no Redis, it answers HTTP: name the port of a Redis"},
		"TLS":              {strings.TrimPrefix(tls.URL, "https://"), "it speaks TLS"},
		"a silent server":  {redistest.Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), "does not answer"},
		"a closing server": {redistest.Listen(t, func(net.Conn) {}), "ends connections without an answer"},
		"another protocol": {redistest.Listen(t, func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-test\r\n")); _, _ = io.Copy(io.Discard, c) }), `it answers "SSH-2.0-test"`},
		"an endless line":  {redistest.Listen(t, func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte("+"), 1<<20)) }), "unexpected reply"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Inspect(t.Context(), Options{Store: cluster.Options{Addrs: []string{row.addr}, DialTimeout: time.Second}})
			if err != nil || r.Verdict != SeverityFail || r.Kind != "" || len(r.Findings) != 1 {
				t.Errorf("got %s, %v", r.text(), err)
			}
			r.expect(t, SeverityFail, "address", row.text)
		})
	}
	t.Run("beside one that can be used", func(t *testing.T) {
		r := inspect(t, "127.0.0.1:1", master.Addr, master.Addr)
		r.expect(t, SeverityWarn, "address", "connection refused")
		if r.Verdict != SeverityWarn {
			t.Errorf("got %s", r.text())
		}
	})
	t.Run("one node of a cluster", func(t *testing.T) {
		c := redistest.StartCluster(t, 3, 0)
		const advice = "name several nodes"
		inspect(t, c.Nodes[0].Addr).expect(t, SeverityNote, "address", advice)
		if r := inspect(t, c.Nodes[0].Addr, c.Nodes[1].Addr); strings.Contains(r.text(), advice) {
			t.Errorf("two nodes: %s", r.text())
		}
		c.Nodes[0].Kill()
		inspect(t, c.Nodes[0].Addr).expect(t, SeverityFail, "address", advice)
	})
	t.Run("another store", func(t *testing.T) {
		r := inspect(t, master.Addr, redistest.Start(t).Addr)
		r.expect(t, SeverityFail, "address", "another store")
	})
}

// TestOtherStores: of the addresses of a store, those of other stores are found, and those of its own nodes
// and of none are not.
func TestOtherStores(t *testing.T) {
	nodes, other := redistest.SharedCluster(t).Addrs(), redistest.Start(t).Addr
	for _, row := range []struct {
		addrs []string
		want  string
	}{
		{nodes, "[]"},
		{append(slices.Clone(nodes), "127.0.0.1:1"), "[]"},
		{append(slices.Clone(nodes), other), "[" + other + "]"},
		{[]string{other, nodes[0], other}, "[" + nodes[0] + "]"},
	} {
		if got, err := OtherStores(t.Context(), cluster.Options{Addrs: row.addrs}); err != nil || fmt.Sprint(got) != row.want {
			t.Errorf("%s: %s, %v", row.addrs, got, err)
		}
	}
}

// relay returns an address that forwards everything to a server. It calls do before it
// forwards command for the nth time.
func relay(tb testing.TB, to, command string, nth int, do func()) string {
	tb.Helper()
	word := []byte("\r\n" + command + "\r\n")
	var seen atomic.Int64
	return redistest.Listen(tb, func(client net.Conn) {
		server, err := net.Dial("tcp", to)
		if err != nil {
			tb.Error(err)
			return
		}
		defer func() { _ = server.Close() }()
		go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
		for buf := make([]byte, 64<<10); ; {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			if more := bytes.Count(bytes.ToUpper(buf[:n]), word); more > 0 && seen.Add(int64(more)) >= int64(nth) {
				do()
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
}
