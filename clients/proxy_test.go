package clients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/servers"
)

// built is the folder of the built binaries: limitgate and the Go drivers.
var built string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if built, err = os.MkdirTemp("", "limitgate-clients-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(built) }()
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", built, "../cmd/limitgate").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build limitgate: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// limits has one bucket for each tenant, which does not refill during a test.
const limits = `
version: 1
default_plan: free
plans:
  free:
    - {id: daily, by: [tenant], rate: 60/d, burst: 60, on_error: open}
`

// serve starts a limitgate with limits or yaml, and returns it with a connection that
// inspects its clients.
func serve(tb testing.TB, yaml string) *proxy {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o644); err != nil {
		tb.Fatal(err)
	}
	// A slow machine must not turn an exact answer into a degraded one.
	p, err := servers.StartLimitgate(filepath.Join(built, "limitgate"), "--limits", path, "--decision-timeout", "5s")
	if err != nil {
		tb.Fatal(err)
	}
	pool := redis.NewClient(&redis.Options{Addr: p.Addr, Protocol: 2})
	tb.Cleanup(func() {
		_ = pool.Close()
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &proxy{Limitgate: p, eye: pool.Conn()}
}

type proxy struct {
	*servers.Limitgate
	eye *redis.Conn
}

// killOthers ends every connection but its own, waits until they are gone, and returns
// the versions of the protocol that they used.
func (p *proxy) killOthers(ctx context.Context) (resp string, err error) {
	open, err := p.others(ctx)
	if err != nil {
		return "", err
	}
	if len(open) == 0 {
		return "", fmt.Errorf("no connection of the client is open")
	}
	for id, version := range open {
		if err := p.eye.Do(ctx, "CLIENT", "KILL", "ID", id).Err(); err != nil {
			return "", err
		}
		if !strings.Contains(resp, version) {
			resp += version
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		left, err := p.others(ctx)
		if err != nil {
			return "", err
		}
		gone := true
		for id := range open {
			gone = gone && left[id] == ""
		}
		if gone {
			return resp, nil
		}
		<-tick.C
	}
}

// others returns the version of the protocol on every other connection, by its id.
func (p *proxy) others(ctx context.Context) (map[string]string, error) {
	own, err := p.eye.ClientID(ctx).Result()
	if err != nil {
		return nil, err
	}
	list, err := p.eye.ClientList(ctx).Result()
	if err != nil {
		return nil, err
	}
	open := map[string]string{}
	for line := range strings.Lines(list) {
		fields := map[string]string{}
		for _, field := range strings.Fields(line) {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		if fields["id"] != strconv.FormatInt(own, 10) {
			open[fields["id"]] = fields["resp"]
		}
	}
	return open, nil
}
