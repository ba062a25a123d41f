package cloudformation

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awstest"
	"github.com/limitgate/limitgate/internal/servers"
)

const (
	// patience bounds one command of the aws command line, which first loads much Python,
	// and the work of the code.
	patience = time.Minute
	region   = "eu-central-1"
)

// awsCLI is the aws command line for an emulator.
type awsCLI struct {
	binary string
	aws    *awstest.AWS
}

// newCLI finds the aws command line beside the emulator, or on PATH.
func newCLI(t *testing.T, emulator *awstest.AWS) awsCLI {
	t.Helper()
	if moto := os.Getenv(servers.MotoVariable); moto != "" {
		if binary, err := exec.LookPath(filepath.Join(filepath.Dir(moto), "aws")); err == nil {
			return awsCLI{binary, emulator}
		}
	}
	binary, err := exec.LookPath("aws")
	if err != nil {
		t.Fatalf("the aws command line is needed to make a stack: pip install awscli: %v", err)
	}
	return awsCLI{binary, emulator}
}

// ask runs a command and decodes its answer into out, unless that is nil.
func (c awsCLI) ask(t *testing.T, out any, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, c.binary, append(args, "--output", "json")...)
	// No configuration of AWS on this machine, and no other endpoint. The command line
	// takes an empty profile for the name of one.
	settings := slices.DeleteFunc(c.aws.Environment(), func(s string) bool { return s == "AWS_PROFILE=" })
	command.Env = append(settings, "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), "AWS_DEFAULT_REGION="+region, "AWS_PAGER=", "NO_PROXY=127.0.0.1")
	var complaints strings.Builder
	command.Stderr = &complaints
	answer, err := command.Output()
	if err != nil {
		t.Fatalf("aws %s: %v\n%s", strings.Join(args, " "), err, &complaints)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(answer, out); err != nil {
		t.Fatalf("aws %s: %v\n%s", strings.Join(args, " "), err, answer)
	}
}

// TestStacksAreMade reads back the resources that the emulator created, because it
// reports CREATE_COMPLETE also for properties that it does not know. README.md lists
// those.
func TestStacksAreMade(t *testing.T) {
	emulator := awstest.Start(t)
	cli := newCLI(t, emulator)
	outputs := makeStack(t, cli, "limitgate", templateFiles[0], "OperatorTenant=acme")
	for _, name := range []string{"LimitsTableName", "CellsTableName", "LeasesTableName", "UpdatesTopicArn", "DeadLetterQueueUrl", "AuditBucketName"} {
		if outputs[name] == "" {
			t.Fatalf("the stack has no output %s: %v", name, outputs)
		}
	}
	limits := describeTable(t, cli, outputs["LimitsTableName"])
	cells := describeTable(t, cli, outputs["CellsTableName"])
	if limits != outputs["LimitsTableArn"]+" "+outputs["LimitsStreamArn"]+" PAY_PER_REQUEST NEW_AND_OLD_IMAGES true" {
		t.Errorf("the table of limits is %s: %v", limits, outputs)
	}
	if cells != outputs["CellsTableArn"]+" "+outputs["CellsStreamArn"]+" PAY_PER_REQUEST NEW_AND_OLD_IMAGES true" {
		t.Errorf("the table of cells is %s: %v", cells, outputs)
	}
	if leases := describeTable(t, cli, outputs["LeasesTableName"]); leases != outputs["LeasesTableArn"]+"  PAY_PER_REQUEST  false" {
		t.Errorf("the table of leases is %s: %v", leases, outputs)
	}
	cli.ask(t, nil, "s3api", "head-bucket", "--bucket", outputs["AuditBucketName"])
	var topicIs struct{ Attributes map[string]string }
	cli.ask(t, &topicIs, "sns", "get-topic-attributes", "--topic-arn", outputs["UpdatesTopicArn"])
	if topicIs.Attributes["KmsMasterKeyId"] != "alias/aws/sns" {
		t.Errorf("the topic is %v", topicIs.Attributes)
	}
	t.Run("policies", func(t *testing.T) {
		comparePolicies(t, cli, outputs, proxy, controlPlane, relayFunction, auditFunction, cellsFunction, operator, tenantOperator, rolloutOperator, auditor)
	})
	t.Run("code", func(t *testing.T) { useStack(t, emulator.Config, outputs) })
	t.Run("cells", func(t *testing.T) { useCells(t, emulator.Config, outputs) })
	t.Run("functions", func(t *testing.T) {
		code := putCode(t, cli)
		compareFunctions(t, cli, outputs, makeStack(t, cli, "limitgate-control-plane", templateFiles[1], "CodeBucket="+code, "CodeKey=lambda.zip"))
	})
	t.Run("alarms of proxies", func(t *testing.T) {
		makeStack(t, cli, "limitgate-proxy-alarms", templateFiles[2], "Service=edge")
	})
	t.Run("store", func(t *testing.T) { makeStore(t, cli) })
	t.Run("without functions", func(t *testing.T) {
		without := makeStack(t, cli, "limitgate-alarms", templateFiles[1], "UseLambda=false")
		if without["RelayFunctionName"] != "" || without["TrailBucketName"] == "" {
			t.Errorf("the stack has %v", without)
		}
	})
}

// makeStack makes a stack with parameters NAME=VALUE, and returns its outputs.
func makeStack(t *testing.T, cli awsCLI, name, file string, parameters ...string) map[string]string {
	t.Helper()
	createStack(t, cli, name, file, parameters...)
	var described struct {
		Stacks []struct {
			StackStatus string
			Outputs     []struct{ OutputKey, OutputValue string }
		}
	}
	cli.ask(t, &described, "cloudformation", "describe-stacks", "--stack-name", name)
	if len(described.Stacks) != 1 || described.Stacks[0].StackStatus != "CREATE_COMPLETE" {
		t.Fatalf("the stack is %+v", described)
	}
	outputs := map[string]string{}
	for _, o := range described.Stacks[0].Outputs {
		outputs[o.OutputKey] = o.OutputValue
	}
	return outputs
}

// createStack makes a stack with parameters NAME=VALUE.
func createStack(t *testing.T, cli awsCLI, name, file string, parameters ...string) {
	t.Helper()
	args := []string{"cloudformation", "create-stack", "--stack-name", name, "--template-body", "file://" + file, "--capabilities", "CAPABILITY_IAM", "--parameters"}
	for _, parameter := range parameters {
		key, value, _ := strings.Cut(parameter, "=")
		args = append(args, "ParameterKey="+key+",ParameterValue="+value)
	}
	cli.ask(t, nil, args...)
}

// describeTable describes a table: its ARN, its stream, its billing mode, the view type
// of its stream, and whether it is protected.
func describeTable(t *testing.T, cli awsCLI, name string) string {
	t.Helper()
	var described struct {
		Table struct {
			TableArn, LatestStreamArn string
			BillingModeSummary        struct{ BillingMode string }
			StreamSpecification       struct{ StreamViewType string }
			DeletionProtectionEnabled bool
		}
	}
	cli.ask(t, &described, "dynamodb", "describe-table", "--table-name", name)
	d := &described.Table
	return fmt.Sprintf("%s %s %s %s %v", d.TableArn, d.LatestStreamArn, d.BillingModeSummary.BillingMode, d.StreamSpecification.StreamViewType, d.DeletionProtectionEnabled)
}

// putCode puts a zip file with a bootstrap into a bucket, and returns its name. The emulator
// runs no function.
func putCode(t *testing.T, cli awsCLI) string {
	t.Helper()
	const name = "limitgate-code"
	var body bytes.Buffer
	w := zip.NewWriter(&body)
	_, err := w.Create("bootstrap")
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "lambda.zip")
	if err := os.WriteFile(file, body.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	cli.ask(t, nil, "s3api", "create-bucket", "--bucket", name, "--create-bucket-configuration", "LocationConstraint="+region)
	cli.ask(t, nil, "s3api", "put-object", "--bucket", name, "--key", "lambda.zip", "--body", file)
	return name
}

// compareFunctions compares the functions and their event sources with their roles.
func compareFunctions(t *testing.T, cli awsCLI, limits, functions map[string]string) {
	var mapped struct {
		EventSourceMappings []struct {
			FunctionArn, EventSourceArn string
			ParallelizationFactor       int
			FunctionResponseTypes       []string
		}
	}
	cli.ask(t, &mapped, "lambda", "list-event-source-mappings")
	readers := map[string][]string{}
	for _, m := range mapped.EventSourceMappings {
		readers[m.EventSourceArn] = append(readers[m.EventSourceArn], m.FunctionArn[strings.LastIndex(m.FunctionArn, ":")+1:])
		if m.ParallelizationFactor != 1 || !slices.Equal(m.FunctionResponseTypes, []string{"ReportBatchItemFailures"}) {
			t.Errorf("a mapping is %+v", m)
		}
	}
	slices.Sort(readers[limits["LimitsStreamArn"]])
	want := map[string][]string{
		limits["LimitsStreamArn"]: {functions["AuditFunctionName"], functions["RelayFunctionName"]},
		limits["CellsStreamArn"]:  {functions["CellsFunctionName"]},
	}
	if fmt.Sprint(readers) != fmt.Sprint(want) {
		t.Errorf("streams are read by %v, want %v", readers, want)
	}
	for name, want := range map[string]map[string]string{
		"Relay": {"LIMITGATE_ROLE": "relay", "LIMITGATE_TABLE": limits["LimitsTableName"], "LIMITGATE_TOPIC": limits["UpdatesTopicArn"], "LIMITGATE_DEAD_LETTERS": limits["DeadLetterQueueUrl"]},
		"Audit": {"LIMITGATE_ROLE": "audit", "LIMITGATE_TABLE": limits["LimitsTableName"], "LIMITGATE_AUDIT_BUCKET": limits["AuditBucketName"]},
		"Cells": {"LIMITGATE_ROLE": "cells", "LIMITGATE_TABLE": limits["LimitsTableName"], "LIMITGATE_CELLS_TABLE": limits["CellsTableName"], "LIMITGATE_ROLLOUT_GATE": limits["RolloutGate"]},
	} {
		var is struct {
			Configuration struct {
				Runtime, Handler string
				Environment      struct{ Variables map[string]string }
			}
			Concurrency struct{ ReservedConcurrentExecutions int }
		}
		cli.ask(t, &is, "lambda", "get-function", "--function-name", functions[name+"FunctionName"])
		if got := is.Configuration; got.Runtime != "provided.al2023" || got.Handler != "bootstrap" || !maps.Equal(got.Environment.Variables, want) {
			t.Errorf("%s is %+v, want %v", name, got, want)
		}
		if reserved := is.Concurrency.ReservedConcurrentExecutions; reserved != map[string]int{"Relay": 10, "Audit": 10, "Cells": 1}[name] {
			t.Errorf("%s may be executed %d times at once", name, reserved)
		}
	}
}

// policyDocuments returns the statements of all created policies, by their ARNs.
func policyDocuments(t *testing.T, cli awsCLI) map[string][]any {
	t.Helper()
	var details struct {
		Policies []struct {
			Arn               string
			PolicyVersionList []struct {
				Document struct{ Statement []any }
			}
		}
	}
	cli.ask(t, &details, "iam", "get-account-authorization-details", "--filter", "LocalManagedPolicy")
	statements := map[string][]any{}
	for _, policy := range details.Policies {
		for _, version := range policy.PolicyVersionList {
			statements[policy.Arn] = append(statements[policy.Arn], version.Document.Statement...)
		}
	}
	return statements
}

// comparePolicies compares the created policies with the resolved references of the
// template.
func comparePolicies(t *testing.T, cli awsCLI, outputs map[string]string, policies ...string) {
	t.Helper()
	meant := strings.NewReplacer("${LimitsTable.Arn}", outputs["LimitsTableArn"], "${LimitsTable.StreamArn}", outputs["LimitsStreamArn"],
		"${CellsTable.Arn}", outputs["CellsTableArn"], "${CellsTable.StreamArn}", outputs["CellsStreamArn"], "${DeadLetterQueue.Arn}", outputs["DeadLetterQueueArn"],
		"${LeasesTable.Arn}", outputs["LeasesTableArn"], "${UpdatesTopic}", outputs["UpdatesTopicArn"], "${AuditBucket.Arn}", outputs["AuditBucketArn"],
		"${AWS::Partition}", "aws", "${AWS::Region}", region, "${AWS::AccountId}", "123456789012", "${OperatorTenant}", "acme", "${StoreName}", "limitgate", "${UserName}", "limitgate")
	documents := policyDocuments(t, cli)
	var got, want []string
	for _, policy := range policies {
		for _, statement := range documents[outputs[policy+"Arn"]] {
			grants, err := grantsOf(policy, statement)
			if err != nil {
				t.Errorf("%s: %v", policy, err)
			}
			for _, g := range grants {
				got = append(got, g.String())
			}
		}
	}
	for g := range needed(allCalls()) {
		if slices.Contains(policies, g.policy) { // the emulator returns no JSON of those of roles
			want = append(want, meant.Replace(g.String()))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the policies allow\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// useStack runs the code on the resources of the stack, to check that keys, stream, topic
// and bucket fit it.
func useStack(t *testing.T, config aws.Config, outputs map[string]string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	check := func(what string, err error) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	queue, err := dynamo.Subscribe(ctx, config, outputs["UpdatesTopicArn"])
	check("subscribe", err)
	body := json.RawMessage(`{"plan":"free"}`)
	_, err = dynamo.NewTable(config, outputs["LimitsTableName"]).Put(ctx, table.Item{Key: "TENANT#acme", Actor: "me", At: time.Now(), Body: body})
	check("put", err)
	changes, err := dynamo.OpenStream(ctx, config, outputs["LimitsTableName"])
	check("open stream", err)
	reader := dynamo.NewChanges(changes, dynamo.NewShardLocks(config, outputs["LeasesTableName"], "relay"), slog.New(slog.DiscardHandler))
	var items []table.Record
	for len(items) == 0 {
		items, err = reader.Next(ctx)
		check("read stream", err)
		check("read stream", ctx.Err())
	}
	if !bytes.Equal(items[0].After.Body, body) {
		t.Errorf("the stream has %+v", items)
	}
	check("note", reader.Done(ctx))
	_, err = dynamo.NewTopic(config, outputs["UpdatesTopicArn"]).Publish(ctx, []table.Message{{}})
	check("publish", err)
	messages, bad, err := queue.Receive(ctx)
	check("receive", err)
	if len(messages) != 1 || bad != 0 {
		t.Errorf("received %v and %d bad ones", messages, bad)
	}
	check("unsubscribe", queue.Close(ctx))
	archive := audit.NewBucket(config, outputs["AuditBucketName"])
	for _, want := range []bool{true, false} {
		created, err := archive.Create(ctx, "TENANT%23acme/1.json", body)
		check("write down", err)
		if created != want {
			t.Errorf("an object was created: %v, want %v", created, want)
		}
	}
	read, err := archive.Read(ctx, audit.Prefix("TENANT#acme"))
	check("read back", err)
	if len(read) != 1 || !bytes.Equal(read[0], body) {
		t.Errorf("read back %s", read)
	}
}

// useCells runs the code on the table of cells and on the queue of dead letters.
func useCells(t *testing.T, config aws.Config, outputs map[string]string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	registry := dynamo.NewRegistry(config, outputs["CellsTableName"])
	now := time.Now()
	if err := errors.Join(registry.Beat(ctx, "eu", 2, now), registry.Report(ctx, table.Report{Cell: "eu", Window: 1}), registry.Veto(ctx, 7, "too much")); err != nil {
		t.Fatal(err)
	}
	cells, err := registry.Cells(ctx)
	if err != nil || len(cells) != 1 || cells[0].ID != "eu" || cells[0].Weight != 2 {
		t.Errorf("the cells are %+v, %v", cells, err)
	}
	if vetoes, err := registry.Vetoes(ctx); err != nil || vetoes[7] != "too much" {
		t.Errorf("the vetoes are %v, %v", vetoes, err)
	}
	url := outputs["DeadLetterQueueUrl"]
	if err := dynamo.NewDeadLetters(config, url).Send(ctx, &table.Record{Sequence: "1", After: &table.Item{Key: "x"}}, "it is no item"); err != nil {
		t.Fatal(err)
	}
	got, err := sqs.NewFromConfig(config).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url})
	if err != nil || len(got.Messages) != 1 || !strings.Contains(aws.ToString(got.Messages[0].Body), "it is no item") {
		t.Errorf("the letters are %+v, %v", got, err)
	}
}
