package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/internal/awsclient"
)

// putItem writes an item by hand.
func putItem(t *testing.T, key, body string) {
	t.Helper()
	a, err := awsclient.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	if _, err := dynamodb.NewFromConfig(a).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("limits"), Item: map[string]types.AttributeValue{
		"pk": text(key), "body": text(body), "version": &types.AttributeValueMemberN{Value: "1"}, "updated_by": text("bob"), "updated_at": text("2026-03-01T10:00:00Z"),
	}}); err != nil {
		t.Fatal(err)
	}
}

// TestPushBesideAnUnusableItem: an item that cannot be used is named, and hides neither what a push would break nor what it loosens.
func TestPushBesideAnUnusableItem(t *testing.T) {
	const pro = "  pro: [{id: tenant, by: [tenant], rate: 1000/s}]\n"
	const acme = "tenants: {acme: {plan: pro}}\n"
	const unusable = `dynamodb://limits: TENANT#hand: tenants.hand.plan: there is no plan "nope": the plans are free, pro`
	pushed(t, freePlan+pro+acme)
	putItem(t, "TENANT#hand", `{"plan":"nope"}`)
	without := writeLimits(t, strings.Replace(freePlan, "version: 1\n", "version: 1\ncomplete_for: [plans]\n", 1))
	out, errs, code := command("limits", "push", "--yes", "--actor", "ann", without, testTable)
	const broken = `the limits of the table would be invalid: dynamodb://limits: TENANT#acme: tenants.acme.plan: there is no plan "pro": the only plan is free`
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

// TestMistakesOfItems: a mistake names its item, and the limit or the override in it; an item whose key is misspelt is named too.
func TestMistakesOfItems(t *testing.T) {
	pushed(t, freePlan)
	putItem(t, "PLAN#pro", `[{"id":"a","by":["tenant"],"rate":"1/s"},{"id":"a","by":["tenant"],"rate":"1/x"}]`)
	putItem(t, "TENANT#acme", `{"overrides":{"tenant":{"rate":"1/y"}}}`)
	putItem(t, "TENNANT#acme", `{}`)
	putItem(t, "plan#gold", `[]`)
	putItem(t, "x", `[]`)
	_, errs, _ := command("limits", "diff", writeLimits(t, freePlan), testTable)
	for _, want := range []string{
		`  dynamodb://limits: PLAN#pro, limit 2, "a": rate: "1/x": `,
		`  dynamodb://limits: TENANT#acme, override of "tenant": rate: "1/y": `,
		"limitgate limits: dynamodb://limits: TENNANT#acme: proxies ignore the item by its key, which is none of limits; did you mean TENANT#acme?\n",
		"did you mean PLAN#gold?\n", "x: proxies ignore the item by its key, which is none of SHARED, PLAN#NAME and TENANT#NAME\n",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("%s lacks %s", errs, want)
		}
	}
	out, errs, code := command("limits", "pull", testTable)
	if !strings.Contains(out, "# TENNANT#acme: proxies ignore the item by its key") || !strings.Contains(out, "1/y") || !strings.Contains(errs, `  dynamodb://limits: TENANT#acme, override of "tenant": rate: "1/y": `) || code != exitError {
		t.Errorf("pull: exit %d: %s%s", code, out, errs)
	}
}

// TestDiffNamesFlawedItems: an item without a time, which proxies ignore, is named beside the comparison, which is without it.
func TestDiffNamesFlawedItems(t *testing.T) {
	pushed(t, freePlan+"tenants: {acme: {}}\n")
	a, err := awsclient.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dynamodb.NewFromConfig(a).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String("limits"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "TENANT#acme"}},
		UpdateExpression: aws.String("REMOVE updated_at"),
	}); err != nil {
		t.Fatal(err)
	}
	_, errs, _ := command("limits", "diff", writeLimits(t, freePlan), testTable)
	if want := "limitgate limits: dynamodb://limits: proxies ignore TENANT#acme: it lacks a valid updated_at: "; strings.Count(errs, want) != 1 {
		t.Errorf("%s, without %s", errs, want)
	}
}
