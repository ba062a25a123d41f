package integration

import (
	"strings"
	"syscall"
	"testing"
)

// TestControlPlaneStart: a control plane does not start without its topic or its table of leases, and a second one logs that it
// stands by, until the first one has ended.
func TestControlPlaneStart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	for _, row := range []struct{ table, topic, leases, want string }{
		{"limits", s.topic + "-other", "leases", "--topic: "},
		{"limits", s.topic, "nolease", "--leases: take lease in nolease: "},
		{"leases", s.topic, "limits", "--table leases has no limits, and --leases limits has some: write --table limits --leases leases\n"},
		{"none", s.topic, "limits", "open stream of none: "},
	} {
		stdout, stderr, code := runCommand(t, nil, s.command("controlplane", "--table", row.table, "--topic", row.topic, "--leases", row.leases))
		if code != 1 || !strings.Contains(stderr, row.want) || strings.Contains(stderr, "reading changes") {
			t.Errorf("exit %d: %s%s, without %q", code, stdout, stderr, row.want)
		}
	}
	const reads, standsBy = `msg="reading changes of the table" use=relay`, `msg="standing by while another control plane reads the changes of the table" use=relay`
	first := s.controlPlane()
	eventually(t, "the first one reads", func() bool { return strings.Contains(first.output(), reads) })
	second := s.controlPlane()
	eventually(t, "the second one stands by", func() bool { return strings.Contains(second.output(), standsBy) })
	if strings.Contains(second.output(), reads) {
		t.Errorf("both read:\n%s", second.output())
	}
	if err := first.stop(syscall.SIGTERM); err != nil || !strings.HasSuffix(first.output(), " msg=stopped\n") {
		t.Errorf("%v, and its log ends otherwise than by stopped:\n%s", err, first.output())
	}
	eventually(t, "the second one reads", func() bool { return strings.Contains(second.output(), reads) })
}
