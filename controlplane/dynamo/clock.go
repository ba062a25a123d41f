package dynamo

import (
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
)

// skewTolerance is by how much this machine's clock may differ from that of AWS before
// it is corrected. The Date of a response has a resolution of a second, and is as old
// as the response.
const skewTolerance = 5 * time.Second

// clock measures by how much the clock of AWS is ahead of this machine's. Heartbeats
// use the clock of AWS, so that machines with wrong clocks agree on which cells are
// active. Any number of goroutines may use it.
type clock struct{ skew atomic.Int64 }

// note measures the difference by the Date of a response.
func (c *clock) note(response middleware.Metadata) {
	date, ok := awsmiddleware.GetServerTime(response)
	if !ok {
		return
	}
	skew := time.Until(date)
	if skew.Abs() <= skewTolerance {
		skew = 0
	}
	c.skew.Store(int64(skew))
}

// toAWS converts a time of this machine's clock to the clock of AWS, and fromAWS the
// reverse.
func (c *clock) toAWS(t time.Time) time.Time   { return t.Add(time.Duration(c.skew.Load())) }
func (c *clock) fromAWS(t time.Time) time.Time { return t.Add(-time.Duration(c.skew.Load())) }
