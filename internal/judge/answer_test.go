package judge

import (
	"fmt"

	"github.com/limitgate/limitgate/limit"
)

// answer is what a store answered to an operation.
type answer struct {
	// Of decisions.
	decided                       bool
	allowed                       bool
	limit, remaining, retry, full int64
	id                            string
	source                        limit.Source
	// outcome is that of a settlement, or 1 for a refund that was given.
	outcome int
	err     string
	// buckets are those that the request met. Only runs that decide one request at a time
	// have them.
	buckets []bucket
}

// bucket is what a request saw of one.
type bucket struct {
	name      string
	id        string
	cost      int64
	remaining int64
	wait      int64 // 0 where it admits
	reset     int64
	params    *limit.Params
	shared    bool
	enforced  bool
	// held says that the buckets in its slot admitted the request.
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
