package clients

import (
	"context"
	"fmt"
	"net/http"
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

// proxy is a running limitgate.
type proxy struct {
	*servers.Limitgate
	// eye is a connection that inspects the clients.
	eye  *redis.Conn
	pool *redis.Client // has eye
	// web reaches the admin address, by scheme.
	web    *http.Client
	scheme string
	// meanwhile is called while the connections of a driver are cut. It may be nil.
	meanwhile func(context.Context) error
}

// access is a way of drivers to a proxy.
type access struct {
	// serve starts a proxy with limits of which nothing is used up. The caller closes it.
	serve func(tb testing.TB, yaml string) *proxy
	// environment has the credentials of the drivers, see clients/go/steps.
	environment []string
	// user is the name under which the proxy has to know the drivers.
	user string
}

// plainAccess has proxies with the store in memory, without TLS and without users.
func plainAccess() access {
	return access{serve: servePlain, user: "default"}
}

func servePlain(tb testing.TB, yaml string) *proxy {
	tb.Helper()
	p := &proxy{Limitgate: start(tb, yaml), web: http.DefaultClient, scheme: "http"}
	p.inspect(&redis.Options{})
	return p
}

// start starts a limitgate with limits and further flags.
func start(tb testing.TB, yaml string, flags ...string) *servers.Limitgate {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o644); err != nil {
		tb.Fatal(err)
	}
	// A slow machine must not turn an exact answer into a degraded one.
	flags = append([]string{"--limits", path, "--decision-timeout", "5s"}, flags...)
	running, err := servers.StartLimitgate(filepath.Join(built, "limitgate"), flags...)
	if err != nil {
		tb.Fatal(err)
	}
	return running
}

// inspect sets the connection that inspects the clients.
func (p *proxy) inspect(options *redis.Options) {
	options.Addr, options.Protocol = p.Addr, 2
	p.pool = redis.NewClient(options)
	p.eye = p.pool.Conn()
}

func (p *proxy) close(tb testing.TB) {
	tb.Helper()
	_ = p.pool.Close()
	p.web.CloseIdleConnections()
	if err := p.Close(); err != nil {
		tb.Error(err)
	}
}

// seen has the versions of the protocol and the users of connections, as the proxy lists
// them.
type seen struct{ resp, user string }

// add adds a connection. Equal values are listed once.
func (s *seen) add(other seen) {
	if !strings.Contains(s.resp, other.resp) {
		s.resp += other.resp
	}
	if s.user != other.user {
		s.user = strings.TrimSpace(s.user + " " + other.user)
	}
}

// cut ends every connection but its own, waits until they are gone, and returns their
// properties.
func (p *proxy) cut(ctx context.Context) (all seen, err error) {
	open, err := p.others(ctx)
	if err != nil {
		return seen{}, err
	}
	if len(open) == 0 {
		return seen{}, fmt.Errorf("no connection of the client is open")
	}
	for id, one := range open {
		if err := p.eye.Do(ctx, "CLIENT", "KILL", "ID", id).Err(); err != nil {
			return seen{}, err
		}
		all.add(one)
	}
	if p.meanwhile != nil {
		if err := p.meanwhile(ctx); err != nil {
			return seen{}, err
		}
	}
	return all, p.awaitGone(ctx, open)
}

// awaitGone waits until connections are gone.
func (p *proxy) awaitGone(ctx context.Context, open map[string]seen) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		left, err := p.others(ctx)
		if err != nil {
			return err
		}
		gone := true
		for id := range open {
			_, found := left[id]
			gone = gone && !found
		}
		if gone {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of connections: %w", ctx.Err())
		}
	}
}

// others returns the properties of every other connection, by its id.
func (p *proxy) others(ctx context.Context) (map[string]seen, error) {
	own, err := p.eye.ClientID(ctx).Result()
	if err != nil {
		return nil, err
	}
	list, err := p.eye.ClientList(ctx).Result()
	if err != nil {
		return nil, err
	}
	open := map[string]seen{}
	for line := range strings.Lines(list) {
		fields := map[string]string{}
		for _, field := range strings.Fields(line) {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		if fields["id"] != strconv.FormatInt(own, 10) {
			open[fields["id"]] = seen{fields["resp"], fields["user"]}
		}
	}
	return open, nil
}
