package integration

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// binaries are the programs under test, built once: the release, the one before, which writes the previous
// format, and the control plane for AWS Lambda.
var binaries struct{ release, previous, lambda string }

// roles are functions that a process of this binary runs instead of the tests. A test
// starts such a process for work that needs one. The value of roleVariable in the
// environment names the role, and the function returns the exit code.
var roles = map[string]func() int{}

const roleVariable = "LIMITGATE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		os.Exit(role())
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "limitgate-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaries.release, binaries.previous, binaries.lambda = filepath.Join(dir, "limitgate"), filepath.Join(dir, "limitgate-previous"), filepath.Join(dir, "bootstrap")
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return redistest.Main(m)
}

// build builds the programs concurrently: linking takes most of the time and uses one
// processor.
func build() error {
	programs := []struct{ path, tags, from string }{
		{binaries.release, "", "../cmd/limitgate"},
		{binaries.previous, "limitgate_previous_format", "../cmd/limitgate"},
		{binaries.lambda, "lambda.norpc", "../cmd/limitgate-lambda"},
	}
	errs := make([]error, len(programs))
	var wg sync.WaitGroup
	for i, b := range programs {
		wg.Go(func() {
			command := exec.Command("go", "build", "-ldflags=-w", "-tags", b.tags, "-o", b.path, b.from)
			command.Env = append(os.Environ(), "CGO_ENABLED=0") // as released
			out, err := command.CombinedOutput()
			if err != nil {
				errs[i] = fmt.Errorf("build %s: %w\n%s", b.from, err, out)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// startTimeout bounds the wait until a process logs that it listens.
const startTimeout = 20 * time.Second

// proxy is a running limitgate.
type proxy struct {
	tb    testing.TB
	cmd   *exec.Cmd
	addr  string
	admin string
	exit  chan error // receives the error of the process's end
	// options, unless nil, change those of clients, and web replaces the client of admin.
	options func(*redis.Options)
	web     *http.Client

	mu  sync.Mutex // guards log
	log bytes.Buffer
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+) admin=(\S+)`)

// serve starts limitgate with a limits file, and waits until it listens.
func serve(tb testing.TB, limits string, flags ...string) *proxy {
	tb.Helper()
	return serveBinary(tb, binaries.release, limits, flags...)
}

// exact are the flags of tests that count: a slow machine must not turn an exact decision
// into a degraded one.
var exact = []string{"--decision-timeout", "5s", "--redis-io-timeout", "10s", "--retry-jitter", "0"}

func serveBinary(tb testing.TB, binary, limits string, flags ...string) *proxy {
	tb.Helper()
	args := []string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	if limits != "" {
		args = append(args, "--limits", limits)
	}
	p, found := launch(tb, exec.Command(binary, append(args, flags...)...), listening)
	p.addr, p.admin = found[1], found[2]
	return p
}

// launch starts a limitgate, and waits until its log matches ready.
func launch(tb testing.TB, cmd *exec.Cmd, ready *regexp.Regexp) (p *proxy, said []string) {
	tb.Helper()
	p = &proxy{tb: tb, cmd: cmd, exit: make(chan error, 1)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	found := make(chan []string, 1)
	go p.read(stderr, ready, found)
	tb.Cleanup(func() { _ = p.stop(syscall.SIGKILL) })
	select {
	case said = <-found:
	case err := <-p.exit:
		p.exit <- err
		tb.Fatalf("limitgate ended: %v\n%s", err, p.output())
	case <-time.After(startTimeout):
		tb.Fatalf("limitgate is not ready:\n%s", p.output())
	}
	return p, said
}

// read collects the log, reports when the process is ready, and waits for its end.
func (p *proxy) read(stderr io.Reader, ready *regexp.Regexp, said chan<- []string) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		p.mu.Lock()
		fmt.Fprintln(&p.log, lines.Text())
		p.mu.Unlock()
		if found := ready.FindStringSubmatch(lines.Text()); found != nil {
			said <- found
		}
	}
	p.exit <- p.cmd.Wait()
}

func (p *proxy) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// end returns how the process ended, if it did, and the last lines of its log.
func (p *proxy) end() string {
	state := "the process runs"
	select {
	case err := <-p.exit:
		p.exit <- err
		state = fmt.Sprintf("the process ended: %v", err)
	default:
	}
	log := p.output()
	return state + "\n" + log[max(0, len(log)-10_000):]
}

// stop sends a signal and returns the process's error.
func (p *proxy) stop(sig syscall.Signal) error {
	_ = p.cmd.Process.Signal(sig)
	select {
	case err := <-p.exit:
		p.exit <- err
		return err
	case <-time.After(startTimeout):
		_ = p.cmd.Process.Kill()
		return fmt.Errorf("limitgate did not end:\n%s", p.output())
	}
}

// client returns a client of the proxy that never retries.
func (p *proxy) client() *redis.Client {
	o := &redis.Options{
		Addr: p.addr, MaxRetries: -1, ReadTimeout: time.Minute, WriteTimeout: time.Minute, DialTimeout: 10 * time.Second,
	}
	if p.options != nil {
		p.options(o)
	}
	c := redis.NewClient(o)
	p.tb.Cleanup(func() { _ = c.Close() })
	return c
}

// get sends a request to the admin listener.
func (p *proxy) get(path string) string {
	p.tb.Helper()
	client, scheme := http.DefaultClient, "http://"
	if p.web != nil {
		client, scheme = p.web, "https://"
	}
	resp, err := client.Get(scheme + p.admin + path)
	if err != nil {
		p.tb.Fatalf("%v\n%s", err, p.end())
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.tb.Fatal(err)
	}
	return string(body)
}

// eventually calls ok until it returns true, or fails the test with what. It polls
// because a proxy and its store do not notify a test of their state.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	redistest.Eventually(tb, startTimeout, what, ok)
}

// verdict is a reply of RL.CHECK.
type verdict struct {
	allowed                  bool
	limit, left, wait, reset int64
	id, source               string
}

func check(c redis.Cmdable, args ...any) (verdict, error) {
	type doer interface {
		Do(ctx context.Context, args ...any) *redis.Cmd
	}
	return asVerdict(c.(doer).Do(context.Background(), append([]any{"RL.CHECK"}, args...)...))
}

func asVerdict(cmd *redis.Cmd) (verdict, error) {
	f, err := cmd.Slice()
	if err != nil {
		return verdict{}, err
	}
	if len(f) != 7 {
		return verdict{}, fmt.Errorf("%d fields: %v", len(f), f)
	}
	var n [5]int64
	for i := range n {
		n[i], _ = f[i].(int64)
	}
	return verdict{n[0] == 1, n[1], n[2], n[3], n[4], fmt.Sprint(f[5]), fmt.Sprint(f[6])}, nil
}

// writeLimits writes a limits file for the test.
func writeLimits(tb testing.TB, yaml string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}

// run runs the binary and returns its output.
func run(tb testing.TB, stdin io.Reader, args ...string) (stdout, stderr string, code int) {
	tb.Helper()
	return runCommand(tb, stdin, exec.Command(binaries.release, args...))
}

func runCommand(tb testing.TB, stdin io.Reader, cmd *exec.Cmd) (stdout, stderr string, code int) {
	tb.Helper()
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		tb.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
