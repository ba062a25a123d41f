package integration

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/limitgate/limitgate/internal/syncbuffer"
)

var timeOfDay = regexp.MustCompile(`(?m)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// TestHistory: each change is printed as one line, the newest last.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.archive()
	if _, errs, code := s.limits("history", "--bucket", auditBucket, "acme"); code != 1 || !strings.Contains(errs, "limits-audit has no audit entries at all: limitgate controlplane writes them, if it has --audit-bucket limits-audit") {
		t.Errorf("the history without entries: %d\n%s", code, errs)
	}
	plane := s.controlPlane("--audit-bucket", auditBucket)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	s.push(tableLimits(t, "acme: {plan: gold, overrides: {tenant: {burst: 20}}}"), "bob")
	s.push(tableLimits(t, ""), "ann")
	const want = `T  version 1  by ann  add     +plan: free
T  version 2  by bob  change  +overrides.tenant.burst: 20, plan: free -> gold
T  version 3  by ann  delete  -overrides.tenant.burst: 20, -plan: gold
`
	var got, errs string
	eventually(t, "the history is there", func() bool {
		got, errs, _ = s.limits("history", "--bucket", auditBucket, "acme")
		return strings.Count(got, "\n") > 2 // an entry may appear before an older one
	})
	if got = timeOfDay.ReplaceAllString(got, "T"); got != want || errs != "" {
		t.Errorf("got\n%s%swant\n%s", got, errs, want)
	}
	asJSON, _, _ := s.limits("history", "--bucket", auditBucket, "--json", "TENANT#acme")
	same, _, code := runCommand(t, nil, s.command("audit", "--bucket", auditBucket, "--json", "acme"))
	if code != 0 || asJSON != same || strings.Count(asJSON, `"key":"TENANT#acme"`) < 3 {
		t.Errorf("as JSON the history is\n%sand the audit %d\n%s", asJSON, code, same)
	}
	if _, errs, code := s.limits("history", "--bucket", auditBucket, "nobody"); code != 1 || !strings.Contains(errs, "no audit entries of TENANT#nobody in limits-audit") {
		t.Errorf("the history of a missing tenant: %d\n%s", code, errs)
	} else if !strings.Contains(errs, "nor of PLAN#nobody: an item is TENANT, TENANT#NAME, PLAN#NAME or SHARED; the plans there are PLAN#free, PLAN#gold") {
		t.Errorf("the advice is\n%s", errs)
	}
	if _, errs, _ := s.limits("history", "--bucket", auditBucket, "acne"); !strings.Contains(errs, "no audit entries of TENANT#acne in limits-audit; did you mean acme?") {
		t.Errorf("the history of a misspelt tenant: %s", errs)
	}
	if _, errs, _ := s.limits("history", "--bucket", auditBucket, "PLAN#golf"); !strings.Contains(errs, "no audit entries of PLAN#golf in limits-audit; did you mean PLAN#gold?") {
		t.Errorf("the history of a misspelt plan: %s", errs)
	}
	got, errs, code = s.limits("history", "--bucket", auditBucket, "gold")
	if code != 0 || !strings.Contains(got, "version 1  by ann  add") || !strings.Contains(errs, "no tenant gold is in the audit; these are the changes of PLAN#gold") {
		t.Errorf("the history of a plan by its name: %d\n%s%s", code, got, errs)
	}
	for _, row := range []struct{ to, item string }{{"3", "acme"}, {"1", "PLAN#gold"}} { // deleted, and as it was
		if out, errs, code := s.limits("rollback", "--bucket", auditBucket, "--to", row.to, "--yes", tableURL, row.item); code != 0 || out != "no difference\n" || errs != "" {
			t.Errorf("a rollback of %s to what it is: %d\n%s%s", row.item, code, out, errs)
		}
	}
	if _, errs, code := s.limits("rollback", "--bucket", auditBucket, "--to", "1", "--yes", tableURL, "gold"); code != 1 || !strings.Contains(errs, "write PLAN#gold for the plan") {
		t.Errorf("a rollback of a plan by its name: %d\n%s", code, errs)
	}
	if err := plane.stop(syscall.SIGTERM); err != nil {
		t.Errorf("the control plane: %v\n%s", err, plane.output())
	}
}

// watching is a running limits watch and its output.
type watching struct {
	*exec.Cmd
	stdout, stderr syncbuffer.Buffer
}

// watch starts limits watch, and waits until it has read the table.
func (s *site) watch(flags ...string) *watching {
	s.tb.Helper()
	w := &watching{Cmd: s.command(append(append([]string{"limits", "watch"}, flags...), tableURL)...)}
	w.Stdout, w.Stderr = &w.stdout, &w.stderr
	if err := w.Start(); err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = w.Process.Kill() })
	eventually(s.tb, "it watches", func() bool { return strings.Contains(w.stderr.String(), "watching dynamodb://limits, ") })
	return w
}

// TestWatch: changes are printed when they are made, with the previous content, as text
// and as JSON. A watch leaves no queue behind, however it ends.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	s.controlPlane()
	people, machine := s.watch("--updates", s.topic), s.watch("--json", "--updates", s.topic)
	s.push(tableLimits(t, "acme: {plan: gold}"), "bob")
	s.push(tableLimits(t, ""), "ann")
	const want = `T  version 2 by bob
change TENANT#acme, version 1 by ann
  - {plan: free}
  + {plan: gold}
T  version 3 by ann
delete TENANT#acme, version 2 by bob
  - {plan: gold}
`
	eventually(t, "the changes are printed", func() bool {
		return strings.Count(people.stdout.String(), "\n") >= strings.Count(want, "\n") && strings.Count(machine.stdout.String(), "\n") > 1
	})
	if got := timeOfDay.ReplaceAllString(people.stdout.String(), "T"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for i, line := range strings.Split(strings.TrimSpace(machine.stdout.String()), "\n") {
		var e audited
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Key != "TENANT#acme" || e.Version != int64(2+i) || e.Before.Version != int64(1+i) || e.After.Deleted != (i == 1) {
			t.Errorf("line %d is %s: %v", i, line, err)
		}
	}
	for sig, w := range map[syscall.Signal]*watching{syscall.SIGINT: people, syscall.SIGTERM: machine} {
		if err := w.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := w.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", sig, err, w.stderr.String())
		}
	}
	if queues, subscriptions := s.Queues(t), s.Subscriptions(t); len(queues) > 0 || len(subscriptions) > 0 {
		t.Errorf("the queues %v and the subscriptions %v stay behind", queues, subscriptions)
	}
	if _, errs, code := s.limits("watch", tableURL); code != 64 || !strings.Contains(errs, "--updates is missing") {
		t.Errorf("without a topic: %d\n%s", code, errs)
	}
}

// TestWatchIntoAPipe: when the reader of a pipe has read the first lines and exits, the
// watch ends and cleans up.
func TestWatchIntoAPipe(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	s.controlPlane()
	head := exec.Command("head", "-n", "1")
	w := &watching{Cmd: s.command("limits", "watch", "--updates", s.topic, tableURL)}
	pipe, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.Stderr, head.Stdin = &w.stderr, pipe
	for _, cmd := range []*exec.Cmd{w.Cmd, head} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
	}
	_ = pipe.Close() // only head uses it
	eventually(t, "it watches", func() bool { return strings.Contains(w.stderr.String(), "watching") })
	s.push(tableLimits(t, "acme: {plan: gold}"), "bob")
	if err := head.Wait(); err != nil {
		t.Error(err)
	}
	s.push(tableLimits(t, "acme: {plan: free}"), "bob")
	if err := w.Wait(); err != nil {
		t.Errorf("%v\n%s", err, w.stderr.String())
	}
	if queues := s.Queues(t); len(queues) > 0 {
		t.Errorf("the queues %v stay behind", queues)
	}
}
