package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/internal/awstest"
)

const testTable = "dynamodb://limits"

// pushed returns an emulator with a table to which a file was pushed.
func pushed(t *testing.T, content string) *environment {
	t.Helper()
	a := awstest.Start(t)
	for _, variable := range a.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	if err := dynamo.NewTable(a.Config, "limits").Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := &environment{stdin: strings.NewReader(""), stdout: &strings.Builder{}, stderr: &strings.Builder{}}
	if code := runPush(t.Context(), env, []string{"--yes", "--actor", "ann", writeLimits(t, content), testTable}); code != exitOK {
		t.Fatal(env.stderr)
	}
	return env
}

func writeLimits(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const freePlan = "version: 1\ndefault_plan: free\nplans:\n  free: [{id: tenant, by: [tenant], rate: 100/s}]\n"

// TestItemByHand: pull and diff show an item that lacks attributes as one.
func TestItemByHand(t *testing.T) {
	pushed(t, freePlan)
	a, err := awsclient.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dynamodb.NewFromConfig(a).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("limits"), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "TENANT#hand"}, "plan": &types.AttributeValueMemberS{Value: "gold"}, "version": &types.AttributeValueMemberN{Value: "1"},
	}}); err != nil {
		t.Fatal(err)
	}
	out, errs, code := command("limits", "pull", testTable)
	const want = "# TENANT#hand is not here, and proxies ignore it: it lacks a valid body, updated_by, updated_at: write items by limitgate limits push\n"
	if code != exitError || !strings.HasPrefix(out, want) || strings.Contains(out, "hand:") || !strings.Contains(errs, "proxies ignore TENANT#hand: it lacks") {
		t.Errorf("pull: exit %d: %s%s", code, out, errs)
	}
	out, errs, code = command("limits", "diff", writeLimits(t, freePlan+"tenants: {hand: {plan: free}}\n"), testTable)
	if code != exitDenied || !strings.Contains(out, "change TENANT#hand, version 1 by unknown") {
		t.Errorf("diff: exit %d: %s%s", code, out, errs)
	}
}

// TestPushWarns: a push prints the warnings of lint, and writes.
func TestPushWarns(t *testing.T) {
	env := pushed(t, freePlan)
	if got := fmt.Sprint(env.stderr); !strings.Contains(got, "on_error") || !strings.HasSuffix(got, " (warning)\n") {
		t.Errorf("%q", got)
	}
}

// TestTableOfLeases: a table with other items and no limits is none of limits, to the control plane and to a reader.
func TestTableOfLeases(t *testing.T) {
	pushed(t, freePlan)
	a, err := awsclient.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := dynamo.NewTable(a, "leases").Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := dynamodb.NewFromConfig(a).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("leases"), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "digest:all"},
	}}); err != nil {
		t.Fatal(err)
	}
	const want = `leases has no limits and other items, such as "digest:all": name the table of limits, which is not that of --leases`
	for _, args := range [][]string{
		{"controlplane", "--table", "leases", "--leases", "other", "--topic", "arn:aws:sns:eu-central-1:123456789012:limits"},
		{"limits", "pull", "dynamodb://leases"},
		{"limits", "diff", writeLimits(t, freePlan), "dynamodb://leases"},
		{"limits", "push", "--yes", "--actor", "ann", writeLimits(t, freePlan), "dynamodb://leases"},
	} {
		if _, errs, code := command(args...); code != exitError || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d: %s, without %s", args, code, errs, want)
		}
	}
}

// TestPushesOverlap: ann deletes a plan between bob's second read and his write of a
// tenant on it. The limits compile in her last read. They do not in bob's, and he writes
// the plan again.
func TestPushesOverlap(t *testing.T) {
	const gold = "  gold: [{id: tenant, by: [tenant], rate: 1000/s}]\n"
	env := pushed(t, freePlan+gold+"tenants: {acme: {plan: free}, beta: {plan: free}}\n")
	ctx := t.Context()
	bob, err := openTableArgs(ctx, env, writeLimits(t, freePlan+gold+"tenants: {acme: {plan: gold}, beta: {plan: free}}\n"), testTable, 3600e9)
	if err != nil {
		t.Fatal(err)
	}
	changes := bob.changes()
	usable, err := bob.recheck(ctx, changes)
	if err != nil || !usable {
		t.Fatal(usable, err)
	}
	ann := runPush(ctx, env, []string{"--yes", "--actor", "ann", writeLimits(t, freePlan+"tenants: {acme: {plan: free}, beta: {plan: free}}\n"), testTable})
	w := &itemWriter{tableArgs: bob, actor: "bob", stopped: ctx, progress: newItemProgress(env.stderr, 1)}
	for _, turn := range table.Turns(changes) {
		if err := w.turn(ctx, turn); err != nil {
			t.Fatal(err)
		}
	}
	err = bob.verify(ctx, "bob")
	if ann != exitOK || err == nil || !strings.Contains(err.Error(), "PLAN#gold was written again") {
		t.Errorf("ann exits with %d, and bob's push fails with %v", ann, err)
	}
	after, openErr := openTableArgs(ctx, env, "", testTable, 3600e9)
	if openErr != nil {
		t.Fatal(openErr)
	}
	if _, _, err := config.CompileParts(testTable, after.live(), after.opts); err != nil {
		t.Errorf("the table stays broken after both: %v", err)
	}
}
