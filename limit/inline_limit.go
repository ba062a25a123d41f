package limit

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/limitgate/limitgate/limit/bucket"
)

// InlineID is the id of inline limits, which requests carry.
const InlineID = "dialect"

// NewInlineLimit returns a token bucket that a request carries, instead of one from a
// limits file: it refills by count units in period microseconds and holds capacity. The
// error names the number that cannot be counted exactly. The limit fails open, and any
// number of requests may share it.
func NewInlineLimit(count, period, capacity int64) (*Limit, error) {
	switch {
	case count < 1 || period < 1 || capacity < 1:
		return nil, errors.New("rate and capacity must be at least 1")
	case period > bucket.MaxPeriod:
		return nil, errors.New("the longest period is 366 days")
	case capacity > bucket.MaxCapacity || count > bucket.MulDivAtMost(bucket.MaxCapacity, period, 1e6, bucket.MaxCapacity):
		return nil, errors.New("the largest rate and capacity that can be counted exactly are 2^40")
	}
	p, err := (&bucket.Rate{Count: count, Period: period}).Params(bucket.AlgorithmTokenBucket, capacity)
	if burst := (*bucket.BurstError)(nil); errors.As(err, &burst) {
		burst.Rate = inlineRate(count, period)
	}
	if err != nil {
		return nil, err
	}
	return &Limit{ID: InlineID, Ordinal: InlineOrdinal, Params: p}, nil
}

// inlineRate returns a rate in the form of limits files, of a period in seconds.
func inlineRate(count, period int64) string {
	return fmt.Sprintf("%d/%ss", count, strconv.FormatFloat(float64(period)/1e6, 'f', -1, 64))
}

// InlineOrdinal is the Limit.Ordinal of inline limits: they are in no Set.
const InlineOrdinal = -1

// MaxKeyBytes bounds Request.Key.
const MaxKeyBytes = 1024

// The buckets of inline limits are called lg:k:{KEY}, each in a hash slot of its own.
// Keys are escaped as other values are.
const inlinePrefix = "lg:k:{"

// InlineName returns the name of the bucket that inline limits have for a key; all of it
// is its key in Redis.
func InlineName(key string) string {
	return string(append(appendEscaped([]byte(inlinePrefix), key), TagEnd))
}

// bindCarried appends the items of a request that carries its limits, and their calls.
func (b *Buffer) bindCarried(req *Request, now int64) Resolved {
	if req.Inline != nil {
		return b.bindInline(req)
	}
	return b.bindDescriptors(req, now)
}

// bindInline appends the item of a request that carries an inline limit, and its call.
func (b *Buffer) bindInline(req *Request) Resolved {
	r := Resolved{FirstItem: len(b.Items), FirstCall: len(b.Calls)}
	begin := len(b.names)
	b.names = appendEscaped(append(b.names, inlinePrefix...), req.Key)
	b.names = append(b.names, TagEnd)
	n := len(b.names)
	b.Items = append(b.Items, Item{
		Limit: req.Inline, Name: b.names[begin:n:n], KeyLen: n - begin, TagLen: n - begin, Cost: req.Cost,
	})
	b.Calls = append(b.Calls, Call{First: len(b.Items) - 1, Last: len(b.Items)})
	r.LastItem, r.LastCall = len(b.Items), len(b.Calls)
	return r
}
