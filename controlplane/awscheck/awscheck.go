// Package awscheck checks in a real account what emulators of AWS do not show: that the tables,
// the topic, the queues and the bucket of limits as data do what the code relies on. Every
// check says what held, or why not. It writes one tenant into the table, and deletes it.
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

// Options name what is checked. Empty names leave their checks out.
type Options struct {
	AWS    aws.Config
	Table  string // the DynamoDB table of limits
	Topic  string // the ARN of the SNS topic
	Leases string // the DynamoDB table for leases
	Bucket string // the S3 bucket of the audit
}

// Result is what one check has found.
type Result struct {
	Check string `json:"check"`
	// Held reports whether the check has found what the code relies on, and LeftOut whether it
	// was not made: something that it needs is not named, or has failed.
	Held    bool   `json:"held"`
	LeftOut bool   `json:"left_out,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
}

// errLeftOut is returned by a check that cannot be made.
var errLeftOut = errors.New("left out")

// checkTime bounds one check. A digest of the control plane on Lambda comes each minute.
const checkTime = 100 * time.Second

// check is one of the checks.
type check struct {
	name string
	run  func(c *checker, ctx context.Context) (detail string, err error)
}

// checks are all checks, in their order: later ones need what earlier ones have made.
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

// checker has what checks hand on to each other.
type checker struct {
	Options
	limits  *dynamo.Table
	queue   *dynamo.Queue // nil without a subscription
	probe   table.Item    // the tenant that is written, without a version before
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

// Run makes all checks one after the other, and hands each result to report. It returns how
// many did not hold.
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

// needs returns an error if something is not there that a check needs.
func needs(there bool, what string) error {
	if there {
		return nil
	}
	return fmt.Errorf("%w: it needs %s", errLeftOut, what)
}
