package integration

import (
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/limitgate/limitgate/controlplane/dynamo"
)

// serving matches the log line of a control plane with an address for health and metrics.
var serving = regexp.MustCompile(`msg="serving metrics" addr=(\S+)`)

// cells runs a subcommand of cells and returns its output.
func (s *site) cells(args ...string) (stdout string) {
	s.tb.Helper()
	stdout, stderr, code := runCommand(s.tb, nil, s.command(append([]string{"cells"}, args...)...))
	if code != 0 {
		s.tb.Fatalf("cells %v: %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

// serveCell starts a proxy in a cell of its own.
func (s *site) serveCell(id string, flags ...string) *proxy {
	s.tb.Helper()
	return s.serve(filepath.Join(s.tb.TempDir(), "snapshot"), append([]string{"--cells-id", id, "--cells-table", "cells"}, flags...)...)
}

// parts waits until proxies enforce parts of a tenant's limit.
func parts(t *testing.T, tenant string, proxies []*proxy, want ...int64) {
	t.Helper()
	for i, p := range proxies {
		enforce(t, tenant, want[i], p)
	}
}

// TestCells: each cell enforces its part of the limits, and the parts add up to the
// limit, while cells join, leave, drain and change their weights. A proxy outside all
// cells enforces the whole limit.
func TestCells(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	s.controlPlane("--cells", "cells")
	outside := s.serve(filepath.Join(t.TempDir(), "snapshot"))
	all := []*proxy{s.serveCell("a")}
	parts(t, "acme", all, 1000)
	all = append(all, s.serveCell("b"), s.serveCell("c"))
	parts(t, "acme", all, 334, 333, 333)
	parts(t, "nobody", all, 34, 33, 33) // of the default plan, 100
	listed := s.cells("--cells", "cells", "--table", "limits")
	for _, line := range []string{"3 cells share the limits", "a     100     active  33.3 %"} {
		if !strings.Contains(listed, line) {
			t.Errorf("the list does not say %q:\n%s", line, listed)
		}
	}
	for _, line := range []string{
		"limitgate_active_cell_count 3", `limitgate_per_cell_limit_effective{limit="tenant",plan="gold"} 334`, "limitgate_cell_raised_limits 0",
	} {
		if metrics := all[0].get("/metrics"); !strings.Contains(metrics, line+"\n") {
			t.Errorf("the metrics do not say %q", line)
		}
	}
	s.cells("weight", "--cells", "cells", "b", "200")
	parts(t, "acme", all, 250, 500, 250)
	s.push(tableLimits(t, "acme: {plan: gold, overrides: {tenant: {rate: 2/s}}}"), "ann")
	parts(t, "acme", all, 1, 1, 1) // each cell admits something
	if metrics := all[0].get("/metrics"); !strings.Contains(metrics, "limitgate_cell_raised_limits 1\n") {
		t.Error("no report that the cells together admit more than the limit")
	}
	s.cells("drain", "--cells", "cells", "b")
	parts(t, "nobody", all, 50, 50, 50) // the part that b had, for requests that still arrive there
	enforce(t, "nobody", 100, outside)
	_ = all[2].stop(syscall.SIGKILL)
	for id, want := range map[string]string{"c": "its last heartbeat was", "nobody": "there is no such cell"} {
		if _, stderr, code := runCommand(t, nil, s.command("cells", "forget", "--cells", "cells", id)); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("forgetting %s: %d, %s", id, code, stderr)
		}
	}
	if err := dynamo.NewRegistry(s.Config, "cells").Forget(t.Context(), "c"); err != nil { // as half a minute later
		t.Fatal(err)
	}
	parts(t, "nobody", all[:1], 100)
	s.cells("join", "--cells", "cells", "b")
	parts(t, "nobody", all[:2], 33, 67)
	// The cells are not part of the file.
	if pulled, _, _ := s.limits("pull", tableURL); strings.Contains(pulled, "CELLS") {
		t.Errorf("the cells are pulled:\n%s", pulled)
	}
	if stdout, stderr, code := s.limits("diff", tableLimits(t, "acme: {plan: gold, overrides: {tenant: {rate: 2/s}}}"), tableURL); code != 0 {
		t.Errorf("the cells differ from the file: %d\n%s%s", code, stdout, stderr)
	}
}
