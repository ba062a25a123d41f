package redistest

import (
	_ "embed" // for the clock's source
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/servers"
)

//go:embed testdata/clock.c
var clockSource []byte

// Clock is the time of day of servers under test.
type Clock struct {
	tb     testing.TB
	offset *os.File
	now    time.Duration // the offset of the clock
}

// UseClock gives every server that the test starts from now on a clock that the test can
// step while they run. Their monotonic clock does not change, as in a real step. It works
// on Linux and needs a C compiler.
//
// The usual library for this, libfaketime, keeps a server with jemalloc from starting.
func UseClock(tb testing.TB) *Clock {
	tb.Helper()
	folder := tb.TempDir()
	source, library := filepath.Join(folder, "clock.c"), filepath.Join(folder, "clock.so")
	offset := filepath.Join(folder, "offset")
	write(tb, source, string(clockSource), 0o600)
	write(tb, offset, strings.Repeat("\x00", 16), 0o600)
	compile(tb, source, library)
	bin := filepath.Join(folder, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		tb.Fatal(err)
	}
	// The wrappers replace themselves by the programs, so that their process ids are the
	// programs'.
	write(tb, filepath.Join(bin, "redis-server"),
		fmt.Sprintf("#!/bin/sh\nCLOCK_OFFSET=%q LD_PRELOAD=%q exec %q \"$@\"\n", offset, library, program(tb, "redis-server")), 0o700)
	write(tb, filepath.Join(bin, "redis-cli"), fmt.Sprintf("#!/bin/sh\nexec %q \"$@\"\n", program(tb, "redis-cli")), 0o700)
	tb.Setenv(servers.BinaryFolderVariable, bin)
	file, err := os.OpenFile(offset, os.O_WRONLY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() })
	return &Clock{tb: tb, offset: file}
}

// Step steps the clock of all servers at once, by whole seconds.
func (c *Clock) Step(by time.Duration) {
	c.tb.Helper()
	c.now += by
	bytes := binary.NativeEndian.AppendUint64(nil, uint64(int64(c.now/time.Second)))
	if _, err := c.offset.WriteAt(bytes, 0); err != nil {
		c.tb.Fatal(err)
	}
}

// Set stops the clock of all servers at now, which is after the epoch, until the next Set.
// It is cheap: a test may call it before every command.
func (c *Clock) Set(now time.Time) {
	bytes := binary.NativeEndian.AppendUint64(nil, uint64(now.UnixMicro()))
	if _, err := c.offset.WriteAt(bytes, 8); err != nil {
		c.tb.Error(err)
	}
}

// Time returns the time of the server.
func (n *Node) Time(tb testing.TB) time.Time {
	tb.Helper()
	client := n.Client()
	defer func() { _ = client.Close() }()
	now, err := client.Time(lasting(tb)).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return now
}

// compile makes a shared library, with the compiler that Go uses.
func compile(tb testing.TB, source, library string) {
	tb.Helper()
	compiler, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		tb.Fatal(err)
	}
	words := append(strings.Fields(string(compiler)), "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, source)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		tb.Fatalf("compile the servers' clock: %v\n%s", err, out)
	}
}

// program returns the absolute path of a program of Redis.
func program(tb testing.TB, name string) string {
	tb.Helper()
	path, err := servers.Binary(name)
	if err != nil {
		tb.Fatal(err)
	}
	if path, err = filepath.Abs(path); err != nil {
		tb.Fatal(err)
	}
	return path
}

func write(tb testing.TB, path, text string, mode os.FileMode) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		tb.Fatal(err)
	}
}
