package cloudformation

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxReaders is the number of readers that a shard of a stream supports: DynamoDB
// throttles a third one.
const maxReaders = 2

// runs returns the properties of the template by which the functions receive each change,
// in order, and give up none silently.
func runs() map[string]string {
	runs := map[string]string{
		"RelayFunction/Properties/ReservedConcurrentExecutions": `"${StreamConcurrency}"`,
		"AuditFunction/Properties/ReservedConcurrentExecutions": `"${StreamConcurrency}"`,
		"CellsFunction/Properties/ReservedConcurrentExecutions": `1`, // only one may run
		"RelayMapping/Properties":                               mapping("Relay", stream, `"StartingPosition":"TRIM_HORIZON"`, 100, 3600, 10000, 0),
		"AuditMapping/Properties":                               mapping("Audit", stream, `"StartingPosition":"TRIM_HORIZON"`, 100, 86400, 10000, 0),
		"CellsMapping/Properties":                               mapping("Cells", cellsStream, `"StartingPosition":"LATEST"`, 1000, 300, 2, 2),
	}
	for _, name := range []string{"Relay", "Audit", "Cells"} {
		function := name + "Function/Properties/"
		runs[function+"Runtime"], runs[function+"Handler"] = `"provided.al2023"`, `"bootstrap"`
		runs[function+"Architectures"] = `["${Architecture}"]`
		runs[function+"Role"] = `"${` + name + `Role.Arn}"`
		runs[function+"LoggingConfig"] = `{"LogGroup":"${` + name + `LogGroup}"}`
		runs[name+"LogGroup/Properties/RetentionInDays"] = `"${LogRetentionDays}"`
		role := name + "Role/Properties/"
		runs[role+"ManagedPolicyArns"] = `["${` + name + `FunctionPolicy}"]`
		runs[role+"AssumeRolePolicyDocument/Statement"] = `[{"Action":"sts:AssumeRole","Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"}}]`
	}
	for _, name := range []string{"Relay", "Cells"} {
		runs[name+"Schedule/Properties"] = `{"ScheduleExpression":"rate(1 minute)","Targets":[{"Arn":"${` + name + `Function.Arn}","Id":"function","RetryPolicy":{"MaximumEventAgeInSeconds":60,"MaximumRetryAttempts":0}}]}`
		runs[name+"SchedulePermission/Properties"] = `{"Action":"lambda:InvokeFunction","FunctionName":"${` + name + `Function}","Principal":"events.amazonaws.com","SourceArn":"${` + name + `Schedule.Arn}"}`
		runs[name+"Ticks/Properties"] = `{"FunctionName":"${` + name + `Function}","MaximumEventAgeInSeconds":60,"MaximumRetryAttempts":0,"Qualifier":"$LATEST"}`
	}
	return runs
}

// mapping is an event source mapping as JSON.
func mapping(function, from, start string, batch, age, retries, window int) string {
	waits := ""
	if window > 0 {
		waits = fmt.Sprintf(`"MaximumBatchingWindowInSeconds":%d,`, window)
	}
	return fmt.Sprintf(`{"BatchSize":%d,"BisectBatchOnFunctionError":true,"DestinationConfig":{"OnFailure":{"Destination":"${FailedBatchQueue.Arn}"}},"EventSourceArn":%q,`+
		`"FunctionName":"${%sFunction}","FunctionResponseTypes":["ReportBatchItemFailures"],%s"MaximumRecordAgeInSeconds":%d,"MaximumRetryAttempts":%d,"ParallelizationFactor":1,%s}`,
		batch, from, function, waits, age, retries, start)
}

// checkRuns returns the properties of runs that the template lacks, and the streams with
// too many readers.
func checkRuns(t template) []string {
	problems := checkPaths(t, runs())
	for _, of := range []string{stream, cellsStream} {
		if readers := readersOf(t, of); len(readers) > maxReaders {
			problems = append(problems, fmt.Sprintf("%s has %d readers: %s", of, len(readers), strings.Join(readers, ", ")))
		}
	}
	return problems
}

// readersOf returns the resources that use a stream and are no policy. Each has as many
// concurrent readers of every shard as its parallelization factor.
func readersOf(t template, stream string) (readers []string) {
	all, _ := at(t, "Resources").(map[string]any)
	for name, resource := range all {
		if at(resource, "Type") != "AWS::IAM::ManagedPolicy" && strings.Contains(asJSON(resource), stream) {
			readers = append(readers, name)
		}
	}
	slices.Sort(readers)
	return readers
}

func TestFunctionsAreToldOfChanges(t *testing.T) {
	parsed, err := parseTemplates(readTemplates(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkRuns(parsed) {
		t.Error(problem)
	}
	if got := readersOf(parsed, stream); !slices.Equal(got, []string{"AuditMapping", "RelayMapping"}) {
		t.Errorf("the stream of limits is read by %v", got)
	}
	if got := parsed.resources("AWS::Lambda::Function"); !slices.Equal(got, []string{"AuditFunction", "CellsFunction", "RelayFunction"}) {
		t.Errorf("the functions are %v", got)
	}
}

func TestCheckRunsReportsWhatIsWrong(t *testing.T) {
	const third = "  SecondMapping:\n    Type: AWS::Lambda::EventSourceMapping\n    Properties:\n      EventSourceArn: {'Fn::ImportValue': !Sub '${LimitsStack}-LimitsStreamArn'}\n\n  RelayMapping:\n"
	for name, test := range map[string]struct {
		old, new string
		want     []string
	}{
		"a third reader":        {"  RelayMapping:\n", third, []string{stream + " has 3 readers: AuditMapping, RelayMapping, SecondMapping"}},
		"a pipe as a reader":    {"  RelayMapping:\n", strings.Replace(third, "Lambda::EventSourceMapping", "Pipes::Pipe", 1), []string{stream + " has 3 readers"}},
		"two at once":           {"ParallelizationFactor: 1", "ParallelizationFactor: 2", []string{"RelayMapping/Properties is"}},
		"all or nothing":        {"      FunctionResponseTypes: [ReportBatchItemFailures]\n", "", []string{"RelayMapping/Properties is"}},
		"no halves":             {"BisectBatchOnFunctionError: true", "BisectBatchOnFunctionError: false", []string{"RelayMapping/Properties is"}},
		"given up in silence":   {"      DestinationConfig:\n        OnFailure: {Destination: !GetAtt FailedBatchQueue.Arn}\n", "", []string{"RelayMapping/Properties is"}},
		"given up after a try":  {"MaximumRetryAttempts: 10000", "MaximumRetryAttempts: 1", []string{"RelayMapping/Properties is"}},
		"an hour of audit":      {"MaximumRecordAgeInSeconds: 86400", "MaximumRecordAgeInSeconds: 3600", []string{"AuditMapping/Properties is"}},
		"two that say who":      {"ReservedConcurrentExecutions: 1\n", "ReservedConcurrentExecutions: 2\n", []string{"CellsFunction/Properties/ReservedConcurrentExecutions is"}},
		"logs for ever":         {"      RetentionInDays: !Ref LogRetentionDays\n", "      LogGroupClass: STANDARD\n", []string{"RelayLogGroup/Properties/RetentionInDays is null"}},
		"somebody else's role":  {"Role: !GetAtt AuditRole.Arn", "Role: !GetAtt RelayRole.Arn", []string{"AuditFunction/Properties/Role is"}},
		"another policy":        {"${LimitsStack}-AuditFunctionPolicyArn", "${LimitsStack}-RelayFunctionPolicyArn", []string{"AuditRole/Properties/ManagedPolicyArns is"}},
		"everybody takes on it": {"Principal: {Service: lambda.amazonaws.com}", "Principal: '*'", []string{"RelayRole/Properties/AssumeRolePolicyDocument/Statement is"}},
		"old ticks":             {"      MaximumEventAgeInSeconds: 60\n", "      MaximumEventAgeInSeconds: 21600\n", []string{"RelayTicks/Properties is"}},
	} {
		t.Run(name, func(t *testing.T) { reported(t, test.old, test.new, test.want, checkRuns) })
	}
}

// TestFunctionsHaveTheirSettings starts the real binary with the environment of each
// function. Without Lambda the binary ends, but not before it has read its settings.
func TestFunctionsHaveTheirSettings(t *testing.T) {
	parsed, err := parseTemplates(readTemplates(t))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "bootstrap")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, "../../cmd/limitgate-lambda").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	const noLambda = "expected AWS Lambda environment variables"
	// Entries of an audit without the name of the table are valid: those of earlier versions have none.
	optional := []string{"RelayFunction LIMITGATE_DEAD_LETTERS", "CellsFunction LIMITGATE_ROLLOUT_GATE", "AuditFunction LIMITGATE_TABLE"}
	for _, function := range parsed.resources("AWS::Lambda::Function") {
		variables, _ := at(parsed, "Resources", function, "Properties", "Environment", "Variables").(map[string]any)
		for without := range variables {
			out := startFunction(t, binary, variables, without)
			if !slices.Contains(optional, function+" "+without) && strings.Contains(out, noLambda) {
				t.Errorf("%s starts without %s", function, without)
			}
		}
		if out := startFunction(t, binary, variables, ""); !strings.Contains(out, noLambda) {
			t.Errorf("%s does not start with %v: %s", function, variables, out)
		}
	}
}

// startFunction starts a binary with all variables but one, and returns its output.
func startFunction(t *testing.T, binary string, variables map[string]any, without string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, binary)
	command.Env = []string{"AWS_REGION=" + region, "AWS_EC2_METADATA_DISABLED=true"}
	for name, value := range variables {
		if name != without {
			command.Env = append(command.Env, fmt.Sprintf("%s=%v", name, value))
		}
	}
	out, err := command.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("it ended with %v: %s", err, out)
	}
	return string(out)
}
