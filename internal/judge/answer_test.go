package judge

import (
	"fmt"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// answer is a store's answer to an operation.
type answer struct {
	// Fields of decisions.
	decided                       bool
	allowed                       bool
	limit, remaining, retry, full int64
	id                            string
	source                        limit.Source
	// outcome is that of a settlement, or 1 for a refund that was made.
	outcome int
	err     string
	// buckets are those to which the request was bound. Only runs that decide one request
	// at a time have them.
	buckets []seenBucket
}

// seenBucket is the state of a bucket that a request saw.
type seenBucket struct {
	name      string
	id        string
	cost      int64
	remaining int64
	wait      int64 // 0 if it admits
	reset     int64
	params    *bucket.Params
	shared    bool
	enforced  bool
	// held reports that the buckets in its hash slot admitted the request.
	held bool
}

func (a *answer) String() string {
	switch {
	case a.err != "":
		return "error: " + a.err
	case !a.decided:
		return fmt.Sprint(a.outcome)
	}
	allowed, id := 0, a.id
	if a.allowed {
		allowed = 1
	}
	if id == "" {
		id = "-"
	}
	return fmt.Sprintf("%d %d %d %d %d %s %s", allowed, a.limit, a.remaining, a.retry, a.full, id, a.source)
}
