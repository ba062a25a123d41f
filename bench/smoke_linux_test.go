package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets this binary be a library's process, like the program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == LibraryCommand {
		if err := ServeLibrary(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// buildLimitgate builds the binary to measure.
func buildLimitgate(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limitgate")
	if out, err := exec.Command("go", "build", "-C", "..", "-buildvcs=false", "-o", path, "./cmd/limitgate").CombinedOutput(); err != nil {
		t.Fatalf("build limitgate: %v\n%s", err, out)
	}
	return path
}

// TestBenchmark runs cases of most kinds, for as short as possible.
func TestBenchmark(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise a library's process ends a second late
	binary := buildLimitgate(t)
	t.Run("measures", func(t *testing.T) {
		o := Options{
			Limitgate: binary, Quick: true, Rounds: 1, Round: 50 * time.Millisecond, Progress: t.Output(),
			Only: []string{"memory-p16", "hot-p16", "denied-flood", "redis-rate-go", "tls-p16", "users-p1", "idle-connections-tls", "garbage-redis-p16", "rls-1", "rls-3-256"},
		}
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Cases) != len(o.Only) {
			t.Fatalf("%d cases, want %d", len(r.Cases), len(o.Only))
		}
		for i := range r.Cases {
			checkResult(t, &r.Cases[i])
		}
	})
	t.Run("measures beside a rate limit service that is named", func(t *testing.T) {
		o := Options{
			Limitgate: binary, EnvoyRatelimit: standIn(t, binary), Quick: true, Rounds: 1, Round: 50 * time.Millisecond, Progress: t.Output(),
			Only: []string{"rls-3"},
		}
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		checkResult(t, &r.Cases[0])
		if sides := r.Cases[0].Sides; len(sides) != 2 || sides[1].Name != "envoyproxy/ratelimit" || sides[1].Proxy == nil || sides[1].Store == nil {
			t.Errorf("sides = %+v", sides)
		}
	})
	t.Run("ends what it started when it is interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := Options{Limitgate: binary, Only: []string{"redis-p1"}, Round: time.Hour, Live: true, Progress: cancelOn{"warming up", cancel}}
		if _, err := Run(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want %v", err, context.Canceled)
		}
		left, err := filepath.Glob(filepath.Join(os.TempDir(), "limitgate-bench-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%v was left behind, %v", left, err)
		}
	})
}

// standIn returns a program with the settings of envoyproxy/ratelimit, which may be missing here.
func standIn(t *testing.T, limitgate string) string {
	t.Helper()
	t.Setenv("LIMITGATE_LISTEN", "127.0.0.1:0")
	t.Setenv("LIMITGATE_ADMIN", "127.0.0.1:0")
	return script(t, "exec '"+limitgate+"' envoy")
}

// script returns the path of a shell script.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// cancelOn cancels when a text is written.
type cancelOn struct {
	text   string
	cancel func()
}

func (c cancelOn) Write(b []byte) (int, error) {
	if strings.Contains(string(b), c.text) {
		c.cancel()
	}
	return len(b), nil
}

// checkResult checks values that do not depend on the machine.
func checkResult(t *testing.T, c *Result) {
	t.Helper()
	if c.Error != "" {
		t.Errorf("%s failed: %s", c.Name, c.Error)
		return
	}
	if len(c.Figures) == 0 {
		t.Errorf("%s has no figures", c.Name)
	}
	for _, s := range c.Sides {
		if s.PerSecond.Median <= 0 || s.Client.Median <= 0 || s.Decisions <= 0 || s.P50.Median <= 0 {
			t.Errorf("%s, %s: %+v", c.Name, s.Name, s)
		}
		if s.Proxy == nil && s.Store == nil {
			t.Errorf("%s, %s has neither proxy nor Redis", c.Name, s.Name)
		}
	}
	for _, f := range c.Figures {
		if strings.HasPrefix(f.Name, "granted") && f.Verdict != met {
			t.Errorf("%s: %s is %v", c.Name, f.Name, f.Value.Median)
		}
	}
}
