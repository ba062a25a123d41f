package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// byHand writes the body of an item, or deletes the item if body is empty, as a person in
// AWS's console would, and waits until the control plane has reverted it.
func (s *site) byHand(tenant, body string) {
	s.tb.Helper()
	client, key := dynamodb.NewFromConfig(s.Config), map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "TENANT#" + tenant}}
	was, _, err := s.table.Get(s.tb.Context(), "TENANT#"+tenant)
	if err != nil {
		s.tb.Fatal(err)
	}
	if body == "" {
		_, err = client.DeleteItem(s.tb.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("limits"), Key: key})
	} else {
		_, err = client.UpdateItem(s.tb.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("limits"), Key: key, UpdateExpression: aws.String("SET body = :b"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":b": &types.AttributeValueMemberS{Value: body}},
		})
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	restored := fmt.Sprintf("version %d by control-plane ", was.Version+1)
	eventually(s.tb, "the change is reverted, and both are in the audit, in either order", func() bool {
		lines, _, _ := s.limits("history", "--bucket", auditBucket, tenant)
		lines = strings.Join(strings.Fields(lines), " ")
		return strings.Contains(lines, " by unknown ") && strings.Contains(lines, restored)
	})
}

// confirm runs limits confirm.
func (s *site) confirm(answer, tenant string) (stdout, stderr string, code int) {
	s.tb.Helper()
	return runCommand(s.tb, strings.NewReader(answer), s.command("limits", "confirm", "--bucket", auditBucket, "--actor", "bob", tableURL, tenant))
}

// TestConfirm: a write or deletion by hand changes no limit until it is confirmed; then
// it does.
func TestConfirm(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.archive()
	s.push(tableLimits(t, "acme: {plan: free}, beta: {plan: gold}"), "ann")
	s.controlPlane("--audit-bucket", auditBucket)
	p := s.serve("")
	s.byHand("acme", `{"plan":"gold"}`)
	s.byHand("beta", "")
	enforce(t, "acme", 100, p)
	enforce(t, "beta", 1000, p)

	const shown = `written by hand, found at T, and reverted as version 2
This loosens limits, or may:
  tenant acme, plan free -> gold: tenant 100/s burst 100 -> 1000/s burst 1000

change TENANT#acme, version 2 by control-plane
  - {plan: free}
  + {plan: gold}
`
	if stdout, stderr, code := s.confirm("n\n", "acme"); code != 1 || !strings.HasPrefix(timeOfDay.ReplaceAllString(stdout, "T"), shown) || !strings.Contains(stderr, "nothing is written") {
		t.Errorf("with the answer no: %d\n%s%s", code, stdout, stderr)
	}
	for tenant, want := range map[string]string{"acme": "  + {plan: gold}\n", "beta": "delete TENANT#beta, version 2 by control-plane\n"} {
		if stdout, stderr, code := s.confirm("y\n", tenant); code != 0 || !strings.Contains(stdout, want) || !strings.Contains(stdout, "1 item written to dynamodb://limits by bob\n") {
			t.Errorf("%s is confirmed: %d\n%s%s", tenant, code, stdout, stderr)
		}
		if it, _, err := s.table.Get(t.Context(), "TENANT#"+tenant); err != nil || it.Version != 3 || it.Actor != "bob" || it.Deleted != (tenant == "beta") {
			t.Errorf("%s is confirmed as %+v, %v", tenant, it, err)
		}
		if _, stderr, code := s.confirm("y\n", tenant); code != 1 || !strings.Contains(stderr, "TENANT#"+tenant+" was changed since it was written by hand: version 3 by bob at ") {
			t.Errorf("%s is confirmed twice: %d\n%s", tenant, code, stderr)
		}
	}
	enforce(t, "acme", 1000, p)
	enforce(t, "beta", 100, p)
}

// TestConfirmRefuses: confirm refuses an item that was not written by hand, and content
// that is not a limit.
func TestConfirmRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.archive()
	s.push(tableLimits(t, "acme: {plan: free}, beta: {plan: gold}"), "ann")
	s.controlPlane("--audit-bucket", auditBucket)
	for _, row := range []struct{ body, want string }{
		{`{"plan":"nope"}`, "the limits of the table would be invalid: "},
		{`no JSON`, "the limits of the table would be invalid: "},
	} {
		s.byHand("acme", row.body)
		if stdout, stderr, code := s.confirm("y\n", "acme"); code != 1 || !strings.Contains(stderr, row.want) {
			t.Errorf("%s is confirmed: %d\n%s%s", row.body, code, stdout, stderr)
		}
	}
	if _, stderr, code := s.confirm("y\n", "beta"); code != 1 || !strings.Contains(stderr, "nothing was reverted: each change in the audit has an actor") {
		t.Errorf("a change with an actor is confirmed: %d\n%s", code, stderr)
	}
	if it, _, err := s.table.Get(t.Context(), "TENANT#acme"); err != nil || it.Actor != "control-plane" || string(it.Body) != `{"plan":"free"}` {
		t.Errorf("in the end there is %+v, %v", it, err)
	}
}
