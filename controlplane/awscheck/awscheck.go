// Package awscheck checks in a real account what emulators of AWS do not show: that the
// tables, the topic, the queues and the bucket of limits as data do what the code
// relies on. Every check reports what it found, or why it failed. The checks write one
// tenant into the table, and delete it.
package awscheck

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
)

// Options name the resources to check. Empty names skip their checks.
type Options struct {
	AWS    aws.Config
	Table  string // the DynamoDB table of limits
	Topic  string // the ARN of the SNS topic
	Leases string // the DynamoDB table for leases
	Bucket string // the S3 bucket of the audit
}

// Result is the result of one check.
type Result struct {
	Check string `json:"check"`
	// Held reports whether the check succeeded. LeftOut reports whether it was skipped:
	// a resource that it needs is not named, or an earlier check failed.
	Held    bool   `json:"held"`
	LeftOut bool   `json:"left_out,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Seconds is the duration of the check.
	Seconds float64 `json:"seconds"`
}

// errLeftOut is returned by a check that is skipped.
var errLeftOut = errors.New("left out")

// checkTime bounds one check. The control plane on Lambda publishes a digest each
// minute.
const checkTime = 100 * time.Second

// check is one of the checks.
type check struct {
	name string
	run  func(c *checker, ctx context.Context) (detail string, err error)
}

// checks are all checks, in their order: later ones need the results of earlier ones.
var checks = []check{
	{"the table's stream has new and old images", (*checker).stream},
	{"the table can be restored to a point in time", (*checker).backups},
	{"tombstones expire", (*checker).expiry},
	{"a queue is made, tagged, subscribed and read at once", (*checker).subscribe},
	{"a write on an old version is refused", (*checker).conflict},
	{"a change reaches the queue", (*checker).change},
	{"the digest that is published is the table's", (*checker).digest},
	{"a lease is one process's at a time", (*checker).lease},
	{"a change is in the audit", (*checker).audited},
	{"an object of the audit is not written again", (*checker).overwrite},
	{"a version of an object of the audit is not deleted", (*checker).erase},
	{"the subscription ends without a trace", (*checker).unsubscribe},
}

// checker is the state that checks share.
type checker struct {
	Options
	limits  *dynamo.Table
	queue   *dynamo.Queue // nil without a subscription
	probe   table.Item    // the tenant that is written; before, it has no version
	written string        // the name of its object in the audit
}

// Names returns the names of all checks, in their order.
func Names() []string {
	names := make([]string, len(checks))
	for i := range checks {
		names[i] = checks[i].name
	}
	return names
}

// Run makes all checks one after the other, and passes each result to report. It
// returns how many failed, without those that were skipped.
func Run(ctx context.Context, o Options, report func(Result)) (failed int) {
	c := &checker{Options: o, limits: dynamo.NewTable(o.AWS, o.Table)}
	for i := range checks {
		began := time.Now()
		bounded, cancel := context.WithTimeout(ctx, checkTime)
		detail, err := checks[i].run(c, bounded)
		cancel()
		r := Result{Check: checks[i].name, Held: err == nil, Detail: detail, Seconds: float64(time.Since(began).Milliseconds()) / 1000}
		if err != nil {
			r.Detail, r.LeftOut = err.Error(), errors.Is(err, errLeftOut)
		}
		if !r.Held && !r.LeftOut {
			failed++
		}
		report(r)
	}
	return failed
}

// needs returns errLeftOut unless the condition for a check holds.
func needs(there bool, what string) error {
	if there {
		return nil
	}
	return fmt.Errorf("%w: it needs %s", errLeftOut, what)
}
