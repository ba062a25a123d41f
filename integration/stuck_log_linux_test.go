package integration

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
)

// TestStuckLog checks that a log which is not read holds up no decision, no change of the limits
// or of revoked tokens, and not the end of the proxy.
func TestStuckLog(t *testing.T) {
	t.Parallel()
	reader, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if _, err := unix.FcntlInt(stderr.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		t.Fatal(err)
	}
	key, _ := bypassKey(t, "k")
	token, limits, revoked := bypassToken(t, key, "load-1", "--rate", "100000/s"), writeLimits(t, limitOf("100/366d")), filepath.Join(t.TempDir(), "revoked.txt")
	if err := os.WriteFile(revoked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binaries.release, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--limits", limits, "--bypass-jwks", key+".json", "--bypass-revoked", revoked)
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = stderr.Close()
	defer func() { _ = cmd.Process.Kill() }()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	found := regexp.MustCompile(`listens on (\S+),`).FindStringSubmatch(line)
	if err != nil || found == nil {
		t.Fatalf("%q, %v", line, err)
	}
	c := redis.NewClient(&redis.Options{Addr: found[1], MaxRetries: -1})
	defer func() { _ = c.Close() }()
	ask := func() verdict {
		v, err := check(c, "t", "-", "-", 1, "BYPASS", token)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for range 3000 { // lines, of which the pipe has room for a few dozen
		if v := ask(); v.limit != -1 {
			t.Fatalf("%+v", v)
		}
	}
	replace(t, revoked, "load-1\n")
	eventually(t, "a revoked token is used", func() bool { return ask().limit == 100 })
	replace(t, limits, limitOf("200/366d"))
	eventually(t, "the limits are the former ones", func() bool { return ask().limit == 200 })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(startTimeout):
		t.Error("the proxy does not end")
	}
}
