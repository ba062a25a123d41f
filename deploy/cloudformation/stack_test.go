package cloudformation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/limitgate/limitgate/audit"
	"github.com/limitgate/limitgate/dynamo"
	"github.com/limitgate/limitgate/internal/awstest"
	"github.com/limitgate/limitgate/internal/servers"
	"github.com/limitgate/limitgate/table"
)

const (
	// patience bounds one command of the aws command line, which begins with reading much
	// Python, and the work of the code.
	patience = time.Minute
	region   = "eu-central-1"
)

// awsCLI is the aws command line, asking an emulator.
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
	// Nothing that this machine has of AWS, and no way out of it.
	// It takes an empty profile for the name of one.
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

// TestStackIsMade: the emulator says CREATE_COMPLETE also of what it does not know, so what
// it made is read back. README.md lists what it drops.
func TestStackIsMade(t *testing.T) {
	emulator := awstest.Start(t)
	cli := newCLI(t, emulator)
	cli.ask(t, nil, "cloudformation", "create-stack", "--stack-name", "limitgate", "--template-body", "file://"+templateFile,
		"--capabilities", "CAPABILITY_IAM", "--parameters", "ParameterKey=OperatorTenant,ParameterValue=acme")
	outputs := stackOutputs(t, cli)
	for _, name := range []string{"LimitsTableName", "LeasesTableName", "UpdatesTopicArn", "AuditBucketName"} {
		if outputs[name] == "" {
			t.Fatalf("the stack has no output %s: %v", name, outputs)
		}
	}

	var limits struct {
		Table struct {
			TableArn, LatestStreamArn string
			BillingModeSummary        struct{ BillingMode string }
			StreamSpecification       struct{ StreamViewType string }
			DeletionProtectionEnabled bool
		}
	}
	cli.ask(t, &limits, "dynamodb", "describe-table", "--table-name", outputs["LimitsTableName"])
	l := &limits.Table
	if got := fmt.Sprint(l.BillingModeSummary.BillingMode, " ", l.StreamSpecification.StreamViewType, " ", l.DeletionProtectionEnabled); got != "PAY_PER_REQUEST NEW_AND_OLD_IMAGES true" {
		t.Errorf("the table of limits is %s", got)
	}
	if l.TableArn != outputs["LimitsTableArn"] || l.LatestStreamArn != outputs["LimitsStreamArn"] {
		t.Errorf("the outputs are not of the table %+v: %v", l, outputs)
	}
	cli.ask(t, nil, "dynamodb", "describe-table", "--table-name", outputs["LeasesTableName"])
	cli.ask(t, nil, "s3api", "head-bucket", "--bucket", outputs["AuditBucketName"])
	var topicIs struct{ Attributes map[string]string }
	cli.ask(t, &topicIs, "sns", "get-topic-attributes", "--topic-arn", outputs["UpdatesTopicArn"])
	if topicIs.Attributes["KmsMasterKeyId"] != "alias/aws/sns" {
		t.Errorf("the topic is %v", topicIs.Attributes)
	}
	t.Run("policies", func(t *testing.T) { comparePolicies(t, cli, outputs) })
	t.Run("code", func(t *testing.T) { useStack(t, emulator.Config, outputs) })
}

// stackOutputs returns the outputs of the stack, which must be there.
func stackOutputs(t *testing.T, cli awsCLI) map[string]string {
	t.Helper()
	var described struct {
		Stacks []struct {
			StackStatus string
			Outputs     []struct{ OutputKey, OutputValue string }
		}
	}
	cli.ask(t, &described, "cloudformation", "describe-stacks", "--stack-name", "limitgate")
	if len(described.Stacks) != 1 || described.Stacks[0].StackStatus != "CREATE_COMPLETE" {
		t.Fatalf("the stack is %+v", described)
	}
	outputs := map[string]string{}
	for _, o := range described.Stacks[0].Outputs {
		outputs[o.OutputKey] = o.OutputValue
	}
	return outputs
}

// comparePolicies compares what became of the policies with what their references mean.
func comparePolicies(t *testing.T, cli awsCLI, outputs map[string]string) {
	meant := strings.NewReplacer("${LimitsTable.Arn}", outputs["LimitsTableArn"], "${LimitsTable.StreamArn}", outputs["LimitsStreamArn"],
		"${LeasesTable.Arn}", outputs["LeasesTableArn"], "${UpdatesTopic}", outputs["UpdatesTopicArn"], "${AuditBucket.Arn}", outputs["AuditBucketArn"],
		"${AWS::Partition}", "aws", "${AWS::Region}", region, "${AWS::AccountId}", "123456789012", "${OperatorTenant}", "acme",
		"TENANT%23", "TENANT#") // the aws CLI unescapes documents once more than the emulator escapes them
	var got, want []string
	for _, policy := range []string{proxy, controlPlane, operator, tenantOperator, auditor} {
		var version struct {
			PolicyVersion struct {
				Document struct{ Statement []any }
			}
		}
		cli.ask(t, &version, "iam", "get-policy-version", "--version-id", "v1", "--policy-arn", outputs[policy+"Arn"])
		for _, statement := range version.PolicyVersion.Document.Statement {
			grants, err := grantsOf(policy, statement)
			if err != nil {
				t.Errorf("%s: %v", policy, err)
			}
			for _, g := range grants {
				got = append(got, g.String())
			}
		}
	}
	for g := range needed(calls) {
		want = append(want, meant.Replace(g.String()))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the policies allow\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// useStack has the code work on what the stack made: keys, stream, topic and bucket are such
// as it needs.
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
	reader := dynamo.NewChanges(changes, dynamo.NewLeases(config, outputs["LeasesTableName"], "relay"))
	var items []table.Record
	for len(items) == 0 {
		items, err = reader.Next(ctx)
		check("read stream", err)
		check("read stream", ctx.Err())
	}
	if !bytes.Equal(items[0].After.Body, body) {
		t.Errorf("the stream tells of %+v", items)
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
