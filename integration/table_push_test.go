package integration

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
	"github.com/limitgate/limitgate/internal/awstest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// records reads the stream of a site from its beginning until it has n records.
func (s *site) records(n int) (records []tables.Record) {
	s.tb.Helper()
	ctx := s.tb.Context()
	stream, err := dynamo.OpenStream(ctx, s.Config, "limits")
	if err != nil {
		s.tb.Fatal(err)
	}
	shards, err := stream.Shards(ctx)
	if err != nil || len(shards) != 1 {
		s.tb.Fatalf("shards %v, %v", shards, err)
	}
	iterator, err := stream.Start(ctx, shards[0].ID, "")
	if err != nil {
		s.tb.Fatal(err)
	}
	eventually(s.tb, fmt.Sprintf("the stream has %d records", n), func() bool {
		var more []tables.Record
		more, iterator, err = stream.Read(ctx, iterator)
		if err != nil {
			s.tb.Fatal(err)
		}
		records = append(records, more...)
		return len(records) >= n
	})
	return records
}

// pusher is a command that asks for confirmation.
type pusher struct {
	cmd            *exec.Cmd
	actor          string
	answer         io.WriteCloser
	stdout, stderr syncbuffer.Buffer
}

// ask starts a push and returns when it asks for confirmation.
func (s *site) ask(t *testing.T, actor, file string) *pusher {
	t.Helper()
	return s.asked(t, actor, "limits", "push", "--actor", actor, file, tableURL)
}

// asked starts a command and returns when it asks for confirmation.
func (s *site) asked(t *testing.T, actor string, args ...string) *pusher {
	t.Helper()
	p := &pusher{cmd: s.command(args...), actor: actor}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	var err error
	if p.answer, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	eventually(t, actor+" is asked", func() bool { return strings.Contains(p.stdout.String(), "[y/N]") })
	return p
}

// yes confirms, and returns the output and exit code of the command.
func (p *pusher) yes(t *testing.T) (stdout, stderr string, code int) {
	t.Helper()
	if _, err := io.WriteString(p.answer, "y\n"); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	return p.stdout.String(), p.stderr.String(), p.cmd.ProcessState.ExitCode()
}

const (
	pushRounds  = 8
	pushTenants = 20
)

// operatorLimits are limits that no other operator pushes in that round.
func operatorLimits(t *testing.T, round, operator int) string {
	var b strings.Builder
	for i := range pushTenants {
		fmt.Fprintf(&b, "t%d: {plan: gold, overrides: {tenant: {rate: %d/s}}}, ", i, 100+10*round+operator)
	}
	return tableLimits(t, strings.TrimSuffix(b.String(), ", "))
}

// TestTwoOperatorsPushAtOnce: two operators push on the same state, all new items, in
// many rounds. Each item has one winner and its next version, and the loser's error names
// the winner.
func TestTwoOperatorsPushAtOnce(t *testing.T) {
	t.Parallel()
	s := newAtomicSite(t)
	s.push(operatorLimits(t, 0, 0), "ann")
	wrote, mixed := map[string]int64{}, 0
	for round := 1; round <= pushRounds; round++ {
		both := []*pusher{s.ask(t, "ann", operatorLimits(t, round, 1)), s.ask(t, "bob", operatorLimits(t, round, 2))}
		var wg sync.WaitGroup
		for _, p := range both {
			wg.Go(func() {
				_, err := io.WriteString(p.answer, "y\n")
				if wait := p.cmd.Wait(); err != nil || !errors.As(wait, new(*exec.ExitError)) && wait != nil {
					t.Error(err, wait)
				}
			})
		}
		wg.Wait()
		items, err := s.table.Scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		now, by := map[string]tables.Item{}, map[string]int{}
		for _, it := range items {
			now[it.Key] = it
			if it.Version != max(wrote[it.Key], 1) {
				by[it.Actor]++
			}
			if gap := it.Version - max(wrote[it.Key], 1); gap < 0 || gap > 1 {
				t.Errorf("round %d: %s went from version %d to %d", round, it.Key, wrote[it.Key], it.Version)
			}
			wrote[it.Key] = it.Version
		}
		for i, p := range both {
			checkPusher(t, round, p, both[1-i].actor, now, by)
		}
		if len(by) == 2 {
			mixed++
		}
	}
	t.Logf("in %d of %d rounds both have won items", mixed, pushRounds)
	checkVersions(t, s, wrote)
}

var lost = regexp.MustCompile(`(\S+) is version (\d+) now, by (\S+) at`)

// checkPusher checks the output of an operator's push: all is written, or the winner of
// each conflict.
func checkPusher(t *testing.T, round int, p *pusher, other string, now map[string]tables.Item, by map[string]int) {
	t.Helper()
	if p.cmd.ProcessState.ExitCode() == 0 {
		if by[p.actor] != pushTenants || by[other] != 0 || p.stderr.String() != "" {
			t.Errorf("round %d: %s exits with success, but %v\n%s", round, p.actor, by, p.stderr.String())
		}
		return
	}
	conflicts := lost.FindAllStringSubmatch(p.stderr.String(), -1)
	if len(conflicts) == 0 || strings.Contains(p.stderr.String(), "cancel") {
		t.Errorf("round %d: %s gets %q", round, p.actor, p.stderr.String())
	}
	for _, words := range conflicts {
		if it := now[words[1]]; words[3] != other || it.Actor != other || fmt.Sprint(it.Version) != words[2] {
			t.Errorf("round %d: %s gets %q, but it is version %d by %s", round, p.actor, words[0], it.Version, it.Actor)
		}
	}
	if by[other] == 0 {
		t.Errorf("round %d: %s was refused, and %s won nothing", round, p.actor, other)
	}
}

// checkVersions checks that the stream has each version of each item once.
func checkVersions(t *testing.T, s *site, newest map[string]int64) {
	t.Helper()
	total := int64(0)
	for _, n := range newest {
		total += n
	}
	seen := map[string]int64{}
	for _, r := range s.records(int(total)) {
		if r.After == nil || r.After.Version != seen[r.After.Key]+1 {
			t.Fatalf("the stream has %+v behind version %d", r.After, seen[r.After.Key])
		}
		seen[r.After.Key]++
	}
}

// TestPushInItsOrder: items that others need are written before them, and deleted after
// them, also while half of the writes are retried.
func TestPushInItsOrder(t *testing.T) {
	t.Parallel()
	s := newAtomicSite(t)
	relay := &awstest.Relay{Throttle: .5}
	throttled := s.behind(relay)
	const n = 30
	many := func(from int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "version: 1\ndefault_plan: p%d\nplans:\n", from)
		for i := range n {
			fmt.Fprintf(&b, "  p%d: [{id: tenant, by: [tenant], rate: %d/s}]\n", from+i, i+1)
		}
		fmt.Fprint(&b, "tenants:\n")
		for i := range n {
			fmt.Fprintf(&b, "  t%d: {plan: p%d}\n", from+i, from+i)
		}
		return writeLimits(t, b.String())
	}
	throttled.push(many(0), "ann")
	throttled.push(many(n), "ann", "--removes", fmt.Sprint(2*n)) // all new, and the old ones are deleted
	turn := func(r tables.Record) string {
		kind, _, _ := strings.Cut(r.After.Key, "#")
		if r.After.Deleted {
			kind = "-" + kind
		}
		return kind
	}
	var turns []string
	for _, r := range s.records(6*n + 2) {
		turns = append(turns, turn(r))
	}
	want := []string{"PLAN", "SHARED", "TENANT", "PLAN", "SHARED", "TENANT", "-TENANT", "-PLAN"}
	if got := slices.Compact(turns); !slices.Equal(got, want) {
		t.Errorf("written are %v, want %v", got, want)
	}
	if got := relay.Throttled.Load(); got < n {
		t.Errorf("only %d requests were throttled", got)
	}
}
