package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/internal/awsclient"
)

// TestPushBesideAnUnusableItem: an item that cannot be used is named, and hides neither what a push would break nor what it loosens.
func TestPushBesideAnUnusableItem(t *testing.T) {
	const pro = "  pro: [{id: tenant, by: [tenant], rate: 1000/s}]\n"
	const acme = "tenants: {acme: {plan: pro}}\n"
	const unusable = `dynamodb://limits:1: tenants.hand.plan: there is no plan "nope": the plans are free, pro`
	pushed(t, freePlan+pro+acme)
	a, err := awsclient.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	if _, err := dynamodb.NewFromConfig(a).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("limits"), Item: map[string]types.AttributeValue{
		"pk": text("TENANT#hand"), "body": text(`{"plan":"nope"}`), "version": &types.AttributeValueMemberN{Value: "1"}, "updated_by": text("bob"), "updated_at": text("2026-03-01T10:00:00Z"),
	}}); err != nil {
		t.Fatal(err)
	}
	without := writeLimits(t, strings.Replace(freePlan, "version: 1\n", "version: 1\ncomplete_for: [plans]\n", 1))
	out, errs, code := command("limits", "push", "--yes", "--actor", "ann", without, testTable)
	const broken = `the limits of the table would be invalid: dynamodb://limits:1: tenants.acme.plan: there is no plan "pro": the plans are free`
	if code != exitError || !strings.Contains(errs, unusable) || !strings.HasSuffix(errs, "nothing is written: "+broken+"\n") {
		t.Errorf("push without a plan: exit %d: %s%s", code, out, errs)
	}
	if out, errs, code := command("limits", "diff", without, testTable); code != exitDenied || !strings.Contains(errs, "limits push would write nothing:\n  "+broken) {
		t.Errorf("diff without a plan: exit %d: %s%s", code, out, errs)
	}
	loose := writeLimits(t, strings.Replace(freePlan, "100/s", "5000/s", 1)+pro+acme)
	out, errs, code = command("limits", "push", "--yes", "--actor", "ann", loose, testTable)
	const loosened = "This loosens limits, or may:\n  plan free: tenant 100/s burst 100 -> 5000/s burst 5000\n"
	if code != exitOK || !strings.Contains(errs, unusable) || !strings.HasPrefix(out, loosened) || !strings.Contains(out, "delete TENANT#hand") {
		t.Errorf("push that corrects the table: exit %d: %s%s", code, out, errs)
	}
	if out, errs, code := command("limits", "diff", loose, testTable); code != exitOK || strings.Contains(errs, "cannot use") {
		t.Errorf("corrected: exit %d: %s%s", code, out, errs)
	}
}
