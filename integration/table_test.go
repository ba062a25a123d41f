package integration

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/internal/awstest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// tableURL is the name of a site's table on the command line.
const tableURL = "dynamodb://limits"

// site is an AWS with a table of limits and a topic, and the processes that use it.
type site struct {
	*awstest.AWS
	tb    testing.TB
	topic string
	table *dynamo.Table
	env   []string // of its processes, in addition to the variables that direct them to the emulator
}

func newSite(tb testing.TB) *site {
	tb.Helper()
	return newSiteOn(tb, awstest.Start(tb))
}

// newAtomicSite is newSite with a table for concurrent writes.
func newAtomicSite(tb testing.TB) *site {
	tb.Helper()
	return newSiteOn(tb, awstest.StartAtomic(tb))
}

// newSerialSite is newSite with tables that handle one request at a time. The emulator
// numbers a change of a stream by the number of changes, and reads that number and adds
// the change in two steps: two concurrent writes could get the same sequence number,
// which no shard of DynamoDB assigns twice.
func newSerialSite(tb testing.TB) *site {
	tb.Helper()
	return newSiteOn(tb, awstest.Start(tb).Through(tb, &awstest.Relay{OneByOne: true}))
}

func newSiteOn(tb testing.TB, a *awstest.AWS) *site {
	tb.Helper()
	s := &site{AWS: a, tb: tb}
	s.furnish()
	return s
}

// behind returns the same site with its tables behind a relay.
func (s *site) behind(relay *awstest.Relay) *site {
	s.tb.Helper()
	b := *s
	b.AWS = s.Through(s.tb, relay)
	b.table = dynamo.NewTable(b.Config, "limits")
	return &b
}

// furnish creates the resources that are lost with an emulator.
func (s *site) furnish() {
	s.tb.Helper()
	s.topic, s.table = s.Topic(s.tb, "limits"), dynamo.NewTable(s.Config, "limits")
	for _, t := range []*dynamo.Table{s.table, dynamo.NewTable(s.Config, "leases"), dynamo.NewTable(s.Config, "cells")} {
		if err := t.Create(s.tb.Context()); err != nil {
			s.tb.Fatal(err)
		}
	}
}

// command returns a limitgate command that uses this AWS.
func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binaries.release, args...)
	cmd.Env = slices.Concat(cmd.Environ(), s.Environment(), s.env)
	return cmd
}

// limits runs a subcommand of limits and returns its output.
func (s *site) limits(args ...string) (stdout, stderr string, code int) {
	s.tb.Helper()
	return runCommand(s.tb, nil, s.command(append([]string{"limits"}, args...)...))
}

// push writes a file into the table.
func (s *site) push(file, actor string, flags ...string) {
	s.tb.Helper()
	args := append([]string{"push", "--yes", "--actor", actor}, flags...)
	if stdout, stderr, code := s.limits(append(args, file, tableURL)...); code != 0 {
		s.tb.Fatalf("push: %d\n%s%s", code, stdout, stderr)
	}
}

var planeStarted = regexp.MustCompile(`msg="control plane started"`)

// controlPlane starts a control plane.
func (s *site) controlPlane(flags ...string) *proxy {
	s.tb.Helper()
	args := []string{"controlplane", "--table", "limits", "--topic", s.topic, "--leases", "leases"}
	p, _ := launch(s.tb, s.command(append(args, flags...)...), planeStarted)
	return p
}

// serve starts a proxy that follows the table, with its snapshot in a file.
func (s *site) serve(snapshot string, flags ...string) *proxy {
	s.tb.Helper()
	p, found := launch(s.tb, s.command(append(s.serveArgs(snapshot), flags...)...), listening)
	p.addr, p.admin = found[1], found[2]
	return p
}

func (s *site) serveArgs(snapshot string) []string {
	return []string{
		"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--limits", tableURL, "--updates", s.topic,
		"--limits-snapshot", snapshot,
	}
}

// tableLimits returns limits with the plans free, of 100, and gold, of 1000, and tenants.
func tableLimits(tb testing.TB, tenants string) string {
	tb.Helper()
	return writeLimits(tb, `
version: 1
default_plan: free
plans:
  free: [{id: tenant, by: [tenant], rate: 100/s, on_error: open}]
  gold: [{id: tenant, by: [tenant], rate: 1000/s, on_error: open}]
tenants: {`+tenants+`}
`)
}

// enforce waits until each proxy enforces a limit of a tenant.
func enforce(t *testing.T, tenant string, limit int64, proxies ...*proxy) {
	t.Helper()
	for i, p := range proxies {
		c := p.client()
		var got verdict
		eventually(t, fmt.Sprintf("proxy %d gives %s %d", i, tenant, limit), func() bool {
			var err error
			if got, err = check(c, tenant, "-", "-"); err != nil {
				t.Fatal(err)
			}
			return got.limit == limit
		})
	}
}

// agree checks that all proxies return the same limits, and returns them.
func agree(t *testing.T, tenant string, proxies ...*proxy) string {
	t.Helper()
	var said []string
	for _, p := range proxies {
		for _, args := range [][]any{{"RL.LIMITS"}, {"RL.LIMITS", tenant}} {
			got, err := p.client().Do(t.Context(), args...).Result()
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, fmt.Sprint(got))
		}
	}
	for i := 2; i < len(said); i++ {
		if said[i] != said[i%2] {
			t.Errorf("proxy %d says %s, the first %s", i/2, said[i], said[i%2])
		}
	}
	return said[1]
}

// TestTableOfLimits: all proxies that follow a table enforce limits that are pushed into
// it, changed or deleted, without a restart. A proxy that stops leaves no queue behind.
func TestTableOfLimits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before, after := tableLimits(t, "acme: {plan: free}, beta: {plan: gold}"), tableLimits(t, "acme: {plan: gold}")
	if stdout, _, code := s.limits("diff", before, tableURL); code != 2 || !strings.Contains(stdout, "add TENANT#acme") {
		t.Errorf("diff with an empty table: %d\n%s", code, stdout)
	}
	if stdout, stderr, code := s.limits("pull", tableURL); code != 0 || stdout != "# "+tableURL+" has no limits yet\n" || !strings.Contains(stderr, "limitgate limits push limits.yaml "+tableURL) {
		t.Errorf("pull of an empty table: %d\n%s%s", code, stdout, stderr)
	}
	s.push(before, "ann")
	if stdout, _, code := s.limits("diff", before, tableURL); code != 0 || stdout != "no difference\n" {
		t.Errorf("diff with the pushed file: %d\n%s", code, stdout)
	}
	plane := s.controlPlane()
	var all []*proxy
	for range 3 {
		all = append(all, s.serve(filepath.Join(t.TempDir(), "snapshot")))
	}
	if n := len(s.Queues(t)); n != len(all) {
		t.Errorf("%d queues of %d proxies", n, len(all))
	}
	enforce(t, "acme", 100, all...)
	enforce(t, "beta", 1000, all...)
	first := agree(t, "acme", all...)
	if !strings.Contains(first, "line:0 ") || regexp.MustCompile(`line:[1-9]`).MatchString(first) {
		t.Errorf("limits of a table have lines of a file: %s", first)
	}
	stdout, _, code := s.limits("diff", after, tableURL)
	for _, part := range []string{"change TENANT#acme, version 1 by ann", "delete TENANT#beta, version 1 by ann"} {
		if code != 2 || !strings.Contains(stdout, part) {
			t.Errorf("diff does not say %q: %d\n%s", part, code, stdout)
		}
	}
	s.push(after, "bob")
	enforce(t, "acme", 1000, all...)
	enforce(t, "beta", 100, all...) // as a tenant that is not listed
	if second := agree(t, "acme", all...); second == first {
		t.Errorf("RL.LIMITS says the same as before: %s", second)
	}
	pulled, _, _ := s.limits("pull", tableURL)
	if stdout, stderr, code := s.limits("diff", writeLimits(t, pulled), tableURL); code != 0 {
		t.Errorf("the pulled limits differ from the table: %d\n%s%s", code, stdout, stderr)
	}
	for i, p := range all {
		if metrics := p.get("/metrics"); strings.Contains(metrics, "\nlimitgate_config_propagation_seconds_count 0\n") {
			t.Errorf("proxy %d does not measure the propagation of changes", i)
		}
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Errorf("proxy %d: %v", i, err)
		}
		if queues, left := s.Queues(t), len(all)-1-i; len(queues) != left || len(s.Subscriptions(t)) != left {
			t.Errorf("%d proxies run, there are the queues %v and the subscriptions %v", left, queues, s.Subscriptions(t))
		}
	}
	if err := plane.stop(syscall.SIGTERM); err != nil {
		t.Errorf("the control plane: %v\n%s", err, plane.output())
	}
	taken := append(s.serveArgs(""), "--listen", s.Addr)
	if _, stderr, code := runCommand(t, nil, s.command(taken...)); code != 1 || !strings.Contains(stderr, s.Addr) {
		t.Errorf("a proxy on a port that is taken: %d\n%s", code, stderr)
	}
	if left := s.Queues(t); len(left) != 0 {
		t.Errorf("a proxy that could not start leaves %v", left)
	}
}

// TestPushOnWhatWasRead: if two people push on the same state, the second one does not
// overwrite the first one's changes, and the error names the first one and the item.
func TestPushOnWhatWasRead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	gold := tableLimits(t, "acme: {plan: gold}")
	slow := s.command("limits", "push", "--actor", "carl", tableLimits(t, "acme: {plan: gold, overrides: {tenant: {rate: 5/s}}}"), tableURL)
	answer, err := slow.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr syncbuffer.Buffer
	slow.Stdout, slow.Stderr = &stdout, &stderr
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slow.Process.Kill() })
	eventually(t, "it asks", func() bool { return strings.Contains(stdout.String(), "Write this item? [y/N]") })
	s.push(gold, "bob")
	if _, err := io.WriteString(answer, "y\n"); err != nil {
		t.Fatal(err)
	}
	_ = slow.Wait()
	if code := slow.ProcessState.ExitCode(); code != 1 {
		t.Errorf("it exits with %d:\n%s%s", code, stdout.String(), stderr.String())
	}
	for _, part := range []string{"it was changed concurrently", "TENANT#acme is version 2 now, by bob at "} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("it does not say %q:\n%s", part, stderr.String())
		}
	}
	if out, _, code := s.limits("diff", gold, tableURL); code != 0 {
		t.Errorf("the table has not what bob wrote: %d\n%s", code, out)
	}
	if out, errs, code := runCommand(t, strings.NewReader("n\n"), s.command("limits", "push", "--actor", "carl", tableLimits(t, ""), tableURL)); code != 1 || !strings.Contains(errs, "nothing is written") {
		t.Errorf("push with the answer no: %d\n%s%s", code, out, errs)
	}
	if out, _, code := s.limits("diff", gold, tableURL); code != 0 {
		t.Errorf("no was taken for yes: %d\n%s", code, out)
	}
}

// TestProxyWithoutItsTable: while AWS is away a proxy starts with the limits of its
// snapshot, running ones continue with their limits, and one without a snapshot fails to
// start with the reason. When AWS is back all of them follow the table again, with a
// queue each.
func TestProxyWithoutItsTable(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	plane := s.controlPlane()
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	ends, stays := s.serve(snapshot), s.serve(filepath.Join(t.TempDir(), "snapshot"))
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	enforce(t, "acme", 1000, ends, stays)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := ends.stop(syscall.SIGTERM); err != nil {
		t.Errorf("a proxy ends without AWS with %v", err)
	}
	again := s.serve(snapshot)
	enforce(t, "acme", 1000, again, stays)
	agree(t, "acme", again, stays)
	if err := stays.client().Do(t.Context(), "RL.CONFIG", "RELOAD").Err(); err == nil || !strings.Contains(err.Error(), "; AWS does not answer: check the network") {
		t.Errorf("RL.CONFIG RELOAD without AWS: %v", err)
	}
	if !strings.Contains(again.output(), "failed to read limits, using snapshot") {
		t.Errorf("the log lacks it:\n%s", again.output())
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, stderr, code := runCommand(t, nil, s.command(s.serveArgs(none)...)); code != 1 || !strings.Contains(stderr, none) {
		t.Errorf("a proxy without table and snapshot: %d\n%s", code, stderr)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	s.furnish()
	// The table has another stream now.
	if err := plane.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	s.controlPlane()
	s.push(tableLimits(t, "acme: {plan: gold}, new: {plan: gold}"), "ann")
	enforce(t, "new", 1000, again, stays)
	eventually(t, "each has a queue", func() bool { return len(s.Queues(t)) == 2 })
}
