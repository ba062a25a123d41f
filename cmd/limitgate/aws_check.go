package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/awscheck"
	"github.com/limitgate/limitgate/internal/awsclient"
)

const awsCheckAbout = `Checks in an AWS account what only AWS can show of limits as data.

Usage: limitgate aws-check --table TABLE [--topic ARN] [--leases TABLE]
           [--audit-bucket BUCKET] [--json]

It needs a table with limits, a control plane that runs, and credentials that may do
all of it: it describes the table, makes a queue and subscribes it, writes the tenant
limitgate-aws-check and deletes it, takes a lease, waits for the change and for a digest
in the queue and for the change in the audit's bucket, and tries to write and to delete
an object there, which must be refused. It deletes the queue. Without --topic, --leases
or --audit-bucket the checks that need them are left out.

AWS is found as its other tools find it: by AWS_REGION, AWS_PROFILE,
AWS_ENDPOINT_URL and their like. It exits with 0 when all checks that were made held, 1
when one did not, and 64 when the arguments are wrong.`

const awsCheckExample = "limitgate aws-check --table limits --topic arn:aws:sns:eu-central-1:123456789012:limits --leases leases --audit-bucket limits-audit"

func runAWSCheck(ctx context.Context, env *environment, args []string) int {
	fs := newFlags(env, "aws-check", awsCheckAbout, awsCheckExample)
	var o awscheck.Options
	fs.StringVar(&o.Table, "table", "", "`name` of the DynamoDB table of limits")
	fs.StringVar(&o.Topic, "topic", "", "`ARN` of the SNS topic")
	fs.StringVar(&o.Leases, "leases", "", "`name` of the DynamoDB table for leases")
	fs.StringVar(&o.Bucket, "audit-bucket", "", "`name` of the S3 bucket of the audit")
	asJSON := fs.Bool("json", false, "print a line of JSON for each check")
	if code, done := parseFlags(env, fs, args); done {
		return code
	}
	if problem := missingFlags(fs, 0, "table"); problem != "" {
		fmt.Fprintf(env.stderr, "limitgate aws-check: %s: %s\n", problem, awsCheckExample)
		return exitUsage
	}
	o.Table = strings.TrimPrefix(o.Table, config.LimitsTablePrefix)
	var err error
	if o.AWS, err = awsclient.Load(ctx); err != nil {
		return fail(env, err)
	}
	report := func(r awscheck.Result) { printResult(env, r) }
	if *asJSON {
		encoder := json.NewEncoder(env.stdout)
		report = func(r awscheck.Result) { _ = encoder.Encode(r) }
	}
	if awscheck.Run(ctx, o, report) > 0 {
		return exitError
	}
	return exitOK
}

// printResult prints the result of a check on one line.
func printResult(env *environment, r awscheck.Result) {
	word, colour := "held", "32"
	switch {
	case r.LeftOut:
		word, colour = "left out", "33"
	case !r.Held:
		word, colour = "FAILED", "31"
	}
	begin, end := "", ""
	if env.coloured() {
		begin, end = "\x1b["+colour+"m", "\x1b[0m"
	}
	detail := r.Detail
	if detail != "" {
		detail = ": " + strings.TrimPrefix(detail, "left out: ")
	}
	fmt.Fprintf(env.stdout, "%s%-8s%s  %s (%.1f s)%s\n", begin, word, end, r.Check, r.Seconds, detail)
}
