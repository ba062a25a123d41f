package integration

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// refusedCommand is a command with operations that AWS refuses.
type refusedCommand struct {
	name       string
	why        refusal
	operations []string // the refused operations, empty for all
	args       []string
	says       []string
}

// refusedCommands returns commands of people, a control plane, and a proxy without a
// snapshot.
func refusedCommands(t *testing.T, s *site) []refusedCommand {
	gold := tableLimits(t, "acme: {plan: gold}")
	push := []string{"limits", "push", "--yes", "--actor", "bob", gold, tableURL}
	plane := []string{"controlplane", "--table", "limits", "--topic", s.topic, "--leases", "leases"}
	none := filepath.Join(t.TempDir(), "none")
	const unknown, denied, expired = "AWS does not know the access key", "their policy does not allow the operation", "the credentials have expired"
	return []refusedCommand{
		{"diff with a wrong key", unknownKey, nil, []string{"limits", "diff", gold, tableURL}, []string{"scan limits", unknown}},
		{"pull with a wrong key", unknownKey, nil, []string{"limits", "pull", tableURL}, []string{"scan limits", unknown}},
		{"push without Scan", accessDenied, []string{"Scan"}, push, []string{"scan limits", denied}},
		{"push without PutItem", accessDenied, []string{"PutItem"}, push, []string{"0 of 1 items are written", "PutItem", denied}},
		{"push without a name", accessDenied, []string{"GetCallerIdentity"}, []string{"limits", "push", "--yes", gold, tableURL}, []string{"or set --actor", denied}},
		{"watch with expired credentials", expiredToken, nil, []string{"limits", "watch", "--updates", s.topic, tableURL}, []string{"create queue", expired}},
		{"watch without Subscribe", accessDenied, []string{"Subscribe"}, []string{"limits", "watch", "--updates", s.topic, tableURL}, []string{"subscribe queue", denied}},
		{"cells with a wrong key", unknownKey, nil, []string{"cells", "--cells", "cells", "--table", "limits"}, []string{"cells", unknown}},
		{"a control plane with a wrong key", unknownKey, nil, plane, []string{"open stream of limits", unknown}},
		{"a control plane without DescribeTable", accessDenied, []string{"DescribeTable"}, plane, []string{"open stream of limits", denied}},
		{"a proxy with expired credentials", expiredToken, nil, s.serveArgs(none), []string{"scan limits", expired, none}},
		{"a proxy without Scan", accessDenied, []string{"Scan"}, s.serveArgs(none), []string{"scan limits", denied, none}},
	}
}

// TestRefusedByAWS: if AWS refuses an operation, the command ends with 1, and reports the
// operation and a remedy, without a secret. It leaves no queue behind, and the table
// unchanged.
func TestRefusedByAWS(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	people := *s
	g := startGuard(s)
	s.env = append(s.env, "AWS_SECRET_ACCESS_KEY=the-secret")
	for _, c := range refusedCommands(t, s) {
		g.deny(c.why, c.operations...)
		stdout, stderr, code := runCommand(t, nil, s.command(c.args...))
		if code != 1 {
			t.Errorf("%s: exit %d\n%s%s", c.name, code, stdout, stderr)
		}
		for _, part := range c.says {
			if !strings.Contains(stderr, part) {
				t.Errorf("%s: it does not say %q:\n%s", c.name, part, stderr)
			}
		}
		if strings.Contains(stdout+stderr, "the-secret") {
			t.Errorf("%s: it prints the secret:\n%s%s", c.name, stdout, stderr)
		}
	}
	if left := s.Queues(t); len(left) != 0 {
		t.Errorf("queues are left: %v", left)
	}
	if stdout, _, code := people.limits("diff", tableLimits(t, "acme: {plan: free}"), tableURL); code != 0 {
		t.Errorf("the table has changed:\n%s", stdout)
	}
}

// TestSnapshotWithoutCredentials: with a snapshot a proxy starts on expired credentials,
// reports stale limits, and follows the table when the credentials are valid. Without one
// it starts even if only the queues hang.
func TestSnapshotWithoutCredentials(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}"), "ann")
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	_ = s.serve(snapshot).stop(syscall.SIGTERM)
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	g := startGuard(s)
	g.deny(expiredToken)
	p := s.serve(snapshot)
	enforce(t, "acme", 100, p)
	if code, body := p.ready(); code != 200 || !strings.Contains(body, `"limits":"stale, `) || !strings.Contains(body, "ExpiredToken") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if stale := metric(p.get("/metrics"), "limitgate_config_stale"); stale != 1 {
		t.Errorf("limitgate_config_stale is %d", stale)
	}
	g.deny(refusal{})
	enforce(t, "acme", 1000, p)
	eventually(t, "it is not stale", func() bool { return metric(p.get("/metrics"), "limitgate_config_stale") == 0 })

	hung := make(chan struct{})
	t.Cleanup(func() { close(hung) }) // before the guard ends, which waits for its calls
	g.rule(func(r request) refusal {
		if r.operation == "CreateQueue" {
			<-hung
		}
		return refusal{}
	})
	without, found := launch(t, s.command(s.serveArgs("")...), listening)
	without.addr, without.admin = found[1], found[2]
	enforce(t, "acme", 1000, without)
}
