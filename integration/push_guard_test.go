package integration

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/internal/awstest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// manyTenants returns limits with two plans and n tenants on gold.
func manyTenants(t *testing.T, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "t%d: {plan: gold}, ", i)
	}
	return tableLimits(t, strings.TrimSuffix(b.String(), ", "))
}

// TestPushOfACutFile: the push of a truncated or empty file writes nothing, unless
// --removes names the number of removed items.
func TestPushOfACutFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	whole := manyTenants(t, 40)
	s.push(whole, "ann")
	plan := "plans: {free: [{id: tenant, by: [tenant], rate: 100/s, on_error: open}], gold: [{id: tenant, by: [tenant], rate: 1000/s, on_error: open}]}\n"
	for _, c := range []struct{ what, file, removes, less string }{
		{"an empty file", writeLimits(t, "version: 1\n"), "the default plan (free), 2 of 2 plans, 40 of 40 tenants; if that is meant, say --removes 43", "42"},
		{"half a file", manyTenants(t, 20), "20 of 40 tenants; if that is meant, say --removes 20", "19"},
		{"a file without its default plan", writeLimits(t, "version: 1\ncomplete_for: [shared]\n"+plan), "the default plan (free); if that is meant, say --removes 1", "0"},
	} {
		for _, flags := range [][]string{{"push", "--yes", "--actor", "ann"}, {"push", "--yes", "--actor", "ann", "--removes", c.less}} {
			if stdout, stderr, code := s.limits(append(flags, c.file, tableURL)...); code != 1 || !strings.Contains(stderr, c.removes) {
				t.Errorf("%s: %d\n%s%s", c.what, code, stdout, stderr)
			}
		}
		if stdout, _, code := s.limits("diff", whole, tableURL); code != 0 {
			t.Errorf("%s: it has changed the table\n%s", c.what, stdout)
		}
	}
	if stdout, stderr, code := s.limits("push", "--yes", "--actor", "ann", "--removes", "20", manyTenants(t, 20), tableURL); code != 0 || !strings.Contains(stdout, "20 items written") {
		t.Errorf("with the number: %d\n%s%s", code, stdout, stderr)
	}
	part := writeLimits(t, "version: 1\ndefault_plan: free\ncomplete_for: [shared, plans]\n"+plan)
	if stdout, _, code := s.limits("diff", part, tableURL); code != 0 {
		t.Errorf("a file that is complete for plans alone: %d\n%s", code, stdout)
	}
	loose := writeLimits(t, "version: 1\ndefault_plan: free\ncomplete_for: [shared, plans]\n"+strings.Replace(plan, "100/s", "101/s", 1))
	if stdout, _, code := s.limits("diff", loose, tableURL); code != 2 || !strings.HasPrefix(stdout, "This loosens limits, or may:\n  plan free: tenant 100/s burst 100 -> 101/s burst 101\n") {
		t.Errorf("diff begins with what is loosened: %d\n%s", code, stdout)
	}
}

// TestPushesThatNeedEachOther: a plan is removed while another person's push of a tenant
// on it waits for confirmation. That push then writes nothing, so nothing needs the plan
// in the end.
func TestPushesThatNeedEachOther(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	with := func(plans, tenants string) string {
		return writeLimits(t, "version: 1\ndefault_plan: free\nplans: {free: [{id: tenant, by: [tenant], rate: 100/s}]"+plans+"}\ntenants: {"+tenants+"}\n")
	}
	const gold = ", gold: [{id: tenant, by: [tenant], rate: 1000/s}]"
	s.push(with(gold, "acme: {plan: free}, beta: {plan: free}"), "ann")
	waits := s.ask(t, "bob", with(gold, "acme: {plan: gold}, beta: {plan: free}"))
	s.push(with("", "acme: {plan: free}, beta: {plan: free}"), "ann")
	if _, err := io.WriteString(waits.answer, "y\n"); err != nil {
		t.Fatal(err)
	}
	_ = waits.cmd.Wait()
	if code := waits.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(waits.stderr.String(), "nothing is written") {
		t.Errorf("bob's push: %d\n%s%s", code, waits.stdout.String(), waits.stderr.String())
	}
	pulled, stderr, code := s.limits("pull", tableURL)
	if code != 0 {
		t.Fatalf("pull: %d\n%s", code, stderr)
	}
	if stdout, stderr, code := runCommand(t, nil, s.command("limits", "lint", writeLimits(t, pulled))); code != 0 {
		t.Errorf("the limits of the table cannot be used: %s%s", stdout, stderr)
	}
}

// TestInterruptedPush: an interrupted push prints how many items are written, and the
// same command writes the others.
func TestInterruptedPush(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	slow := s.behind(&awstest.Relay{OneByOne: true, Throttle: .5})
	const n = 400
	file := manyTenants(t, n)
	cmd := slow.command("limits", "push", "--yes", "--actor", "ann", file, tableURL)
	var stdout, stderr syncbuffer.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, "some items are written", func() bool {
		items, err := s.table.Scan(t.Context())
		return err == nil && len(items) > 20
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	said := regexp.MustCompile(`(\d+) of (\d+) items are written: interrupted; the same command writes the others`).FindStringSubmatch(stderr.String())
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 || said == nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	items, err := s.table.Scan(t.Context())
	if err != nil || fmt.Sprint(len(items)) != said[1] || fmt.Sprint(n+3) != said[2] {
		t.Errorf("%d items are written: %s, %v", len(items), said[0], err)
	}
	s.push(file, "ann")
	if stdout, _, code := s.limits("diff", file, tableURL); code != 0 {
		t.Errorf("after the second push: %s", stdout)
	}
}

// TestPushIntoLeases: a push writes no limits into the table of a control plane's leases.
func TestPushIntoLeases(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	name, lease := "limits", map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "digest:all"}}
	client := dynamodb.NewFromConfig(s.Config)
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: lease}); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := s.limits("push", "--yes", "--actor", "ann", tableLimits(t, "acme: {plan: gold}"), tableURL)
	const want = `limitgate limits push: nothing is written: dynamodb://limits has no limits and other items, such as "digest:all": name the table of limits, which is not that of --leases` + "\n"
	if code != 1 || stdout != "" || stderr != want {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &name}); err != nil || out.Count != 1 {
		t.Errorf("%d items, %v", out.Count, err)
	}
}
