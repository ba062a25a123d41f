//go:build long

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/dynamo"
)

// clockVariable is the environment variable with the clock offset of a skewed binary.
const clockVariable = "TEST_CLOCK_OFFSET"

// clockOffset is an additional file of the package time of a skewed binary.
const clockOffset = `package time

import "syscall"

var clockOffset = func() int64 {
	text, _ := syscall.Getenv("` + clockVariable + `")
	if text == "" {
		return 0
	}
	d, err := ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return int64(d / Second)
}()
`

// skewedBinary builds the release with a clock that is off by the value of clockVariable.
// Only the wall clock is off; timers and monotonic readings are not. Go reads the clock
// without the C library, so it cannot be intercepted at run time.
var skewedBinary = sync.OnceValues(func() (path string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	folder, err := filepath.Abs("../.cache/clock") // a fixed folder: the build cache has overlays by their paths
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	of := func(name string) string { return filepath.Join(strings.TrimSpace(string(root)), "src", "time", name) }
	source, err := os.ReadFile(of("time.go"))
	if err != nil {
		return "", err
	}
	const now, skewed = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n", "\tsec += clockOffset\n"
	if n := strings.Count(string(source), now); n != 1 {
		return "", fmt.Errorf("time.go of this toolchain has %d times %q", n, now)
	}
	replaced := map[string]string{}
	for name, text := range map[string]string{"time.go": strings.Replace(string(source), now, now+skewed, 1), "clock_offset.go": clockOffset} {
		replaced[of(name)] = filepath.Join(folder, name)
		if err := os.WriteFile(replaced[of(name)], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600); err != nil {
		return "", err
	}
	path = filepath.Join(folder, "limitgate")
	out, err := exec.Command("go", "build", "-ldflags=-w", "-overlay", filepath.Join(folder, "overlay.json"), "-o", path, "../cmd/limitgate").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build with another clock: %w\n%s", err, out)
	}
	return path, nil
})

// off returns a command of the site with a skewed clock.
func (s *site) off(offset time.Duration, args ...string) *exec.Cmd {
	s.tb.Helper()
	path, err := skewedBinary()
	if err != nil {
		s.tb.Fatal(err)
	}
	cmd := s.command(args...)
	cmd.Path = path
	cmd.Env = append(cmd.Env, clockVariable+"="+offset.String())
	return cmd
}

// planeOff starts a control plane with a skewed clock.
func (s *site) planeOff(offset time.Duration, flags ...string) *proxy {
	s.tb.Helper()
	p, _ := launch(s.tb, s.off(offset, append([]string{"controlplane", "--table", "limits", "--topic", s.topic, "--leases", "leases"}, flags...)...), planeStarted)
	return p
}

// serveOff starts a proxy with a skewed clock.
func (s *site) serveOff(offset time.Duration, flags ...string) *proxy {
	s.tb.Helper()
	p, found := launch(s.tb, s.off(offset, append(s.serveArgs(filepath.Join(s.tb.TempDir(), "snapshot")), flags...)...), listening)
	p.addr, p.admin = found[1], found[2]
	return p
}

const clockYear = 365 * 24 * time.Hour

// quiet checks for d, long enough for a silence to show, that proxies report neither
// stale limits nor an error.
func quiet(t *testing.T, d time.Duration, all []*proxy) {
	t.Helper()
	for late := time.Now().Add(d); time.Now().Before(late); pause(time.Second) {
		for i, p := range all {
			metrics, ready := p.get("/metrics"), p.get("/readyz")
			if metric(metrics, "limitgate_config_stale") != 0 || strings.Contains(ready, "limits_error") {
				t.Fatalf("proxy %d says %s\n%s", i, ready, p.output())
			}
		}
	}
}

// TestLongTableClockOfProxies: proxies with clocks that are off by minutes or a year
// enforce the table, receive changes like others, and none reports stale limits. A
// control plane with such a clock deletes the queues of all of them, and they create new
// ones.
func TestLongTableClockOfProxies(t *testing.T) {
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}, gone: {plan: gold}"), "ann")
	s.controlPlane()
	var all []*proxy
	for _, offset := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, clockYear, -clockYear} {
		all = append(all, s.serveOff(offset))
	}
	change := func(tenants string, acme, gone int64) {
		t.Helper()
		began := time.Now()
		s.push(tableLimits(t, tenants), "bob")
		enforce(t, "acme", acme, all...)
		enforce(t, "gone", gone, all...)
		t.Logf("enforced %s after the push", time.Since(began).Round(time.Millisecond))
	}
	change("acme: {plan: gold}", 1000, 100)
	change("acme: {plan: free}, gone: {plan: gold}", 100, 1000) // although its tombstone is a year old by one clock
	change("acme: {plan: gold, overrides: {tenant: {rate: 7/s}}}", 7, 100)
	quiet(t, 40*time.Second, all)
	for i, p := range all {
		metrics := p.get("/metrics")
		if n := metric(metrics, "limitgate_config_repairs_total"); n > 1 {
			t.Errorf("proxy %d has read the table %d times", i, n)
		}
		if sum := metric(metrics, "limitgate_config_propagation_seconds_sum"); sum < 0 {
			t.Errorf("proxy %d has learned of changes %d seconds before they were made", i, -sum)
		}
	}
	if swept, err := dynamo.NewSweeper(s.Config, s.topic).Sweep(t.Context(), time.Now().Add(clockYear)); err != nil || swept < len(all)-1 {
		t.Fatalf("a sweeper of another year takes %d queues: %v", swept, err)
	}
	eventually(t, "each has a queue again", func() bool { return len(s.Queues(t)) == len(all) })
	change("acme: {plan: gold, overrides: {tenant: {rate: 8/s}}}", 8, 100)
}

// TestLongTableClockOfPlanes: two control planes with clocks that are off in opposite
// directions take each other's locks, so that each change is published twice, without
// harm. One that is a year ahead continues where they were killed.
func TestLongTableClockOfPlanes(t *testing.T) {
	s := newSite(t)
	m := startMeter(s)
	s.env = m.environment()
	s.push(tableLimits(t, ""), "ann")
	planes := []*proxy{s.planeOff(10 * time.Minute), s.planeOff(-10 * time.Minute)}
	all := []*proxy{s.serve(filepath.Join(t.TempDir(), "snapshot"))}
	changes := func(from int64) {
		t.Helper()
		for rate := from; rate < from+5; rate++ {
			s.push(tableLimits(t, fmt.Sprintf("acme: {plan: gold, overrides: {tenant: {rate: %d/s}}}", rate)), "bob")
			enforce(t, "acme", rate, all...)
		}
	}
	changes(10)
	m.reset()
	quiet(t, 40*time.Second, all)
	_, _, messages := m.costs()
	t.Logf("in 40 quiet seconds the proxy gets %v messages", messages)
	for _, n := range messages {
		if n > 12 {
			t.Errorf("%d digests in 40 s: two control planes publish 8 or so", n)
		}
	}
	for _, p := range planes {
		_ = p.stop(syscall.SIGKILL)
	}
	began := time.Now()
	s.planeOff(clockYear)
	changes(20)
	t.Logf("one that is a year ahead goes on within %s", time.Since(began).Round(time.Millisecond))
	quiet(t, 40*time.Second, all)
}

// TestLongTableClockOfCells: a control plane with a skewed clock accepts a new cell,
// because heartbeats have the time of AWS.
func TestLongTableClockOfCells(t *testing.T) {
	for _, offset := range []time.Duration{clockYear, 10 * time.Minute, -10 * time.Minute} {
		t.Run(offset.String(), func(t *testing.T) {
			s := newSite(t)
			s.push(tableLimits(t, ""), "ann")
			right := s.controlPlane("--cells", "cells")
			all := []*proxy{s.serveCell("a"), s.serveCell("b")}
			parts(t, "nobody", all, 50, 50)
			_ = right.stop(syscall.SIGTERM)
			plane := s.planeOff(offset, "--cells", "cells")
			all = append(all, s.serveCell("c"))
			parts(t, "nobody", all, 34, 33, 33)
			_ = plane.stop(syscall.SIGKILL)
		})
	}
}
