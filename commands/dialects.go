package commands

import (
	"context"
	"math"
	"strconv"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/limit"
)

// maxInlineLimits bounds the limits that are kept compiled which came with requests:
// services use a handful. At some 600 bytes each this is 2 MB.
const maxInlineLimits = 4096

// inlineLimits compiles the limits that come with requests in the dialects of other
// limiters, and remembers them: requests that bring the same limit are decided in
// one call. Any number of goroutines may use it.
type inlineLimits struct {
	known *lru.Cache[inlineKey, *limit.Limit]
}

// inlineKey says what a limit is: count units in period microseconds, and capacity.
type inlineKey struct{ count, period, capacity int64 }

func newInlineLimits() *inlineLimits {
	known, err := lru.New[inlineKey, *limit.Limit](maxInlineLimits)
	if err != nil {
		panic(err) // of a size that is not positive
	}
	return &inlineLimits{known}
}

// limit returns the limit with these numbers.
func (o *inlineLimits) limit(key inlineKey) (*limit.Limit, error) {
	if l, ok := o.known.Get(key); ok {
		return l, nil
	}
	l, err := limit.NewInlineLimit(key.count, key.period, key.capacity)
	if err == nil {
		o.known.Add(key, l)
	}
	return l, err
}

// fill makes a request of a key, a limit and a quantity, or returns what is wrong.
// A quantity that no bucket can hold is denied as any other that does not fit.
func (o *inlineLimits) fill(req *limit.Request, key []byte, of inlineKey, quantity int64) error {
	l, err := o.limit(of)
	if err != nil {
		return err
	}
	*req = limit.Request{Inline: l, Key: alias(key), Cost: min(quantity, maxQuantity)}
	return nil
}

// maxQuantity is more than any bucket holds, and still counted exactly.
const maxQuantity = limit.MaxCapacity + 1

const (
	second = 1_000_000 // in microseconds
	// maxSeconds is the longest period in seconds that is told apart from longer ones:
	// it is beyond what a limit can have, and does not overflow.
	maxSeconds = math.MaxInt64 / second
)

// capacityOf returns what a bucket with a burst holds: one more, as the first request
// is none of the burst. The largest burst has no successor, and is refused as it is.
func capacityOf(burst int64) int64 { return max(burst, burst+1) }

// validKey reports whether a key may be one: 1 to limit.MaxKeyBytes of any bytes.
func validKey(key []byte) bool { return len(key) > 0 && len(key) <= limit.MaxKeyBytes }

const (
	redisCellUsage    = "Cell error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	redisCellZeroRate = "Cell error: Zero rates are not supported"
)

// parseRedisCell reads CL.THROTTLE key max_burst count period [quantity], with the errors
// of redis-cell 0.5.0. What that computes wrongly is an error here: negative numbers.
func (o *inlineLimits) parseRedisCell(args [][]byte, req *limit.Request) (complaint string) {
	if len(args) != 5 && len(args) != 6 {
		return redisCellUsage
	}
	n := [4]int64{3: 1}
	for i, arg := range args[2:] {
		v, err := strconv.ParseInt(alias(arg), 10, 64)
		if err != nil {
			return "Cell error: Couldn't parse as integer: " + quote(arg)
		}
		n[i] = v
	}
	burst, count, period, quantity := n[0], n[1], n[2], n[3]
	switch {
	case !validKey(args[1]):
		return "Cell error: a key is 1 to " + strconv.Itoa(limit.MaxKeyBytes) + " bytes"
	case count == 0 || period == 0 || period > 0 && (count-1)/1_000_000_000 >= period:
		return redisCellZeroRate
	case burst < 0 || count < 0 || period < 0 || quantity < 0:
		return "Cell error: Negative numbers are not supported"
	}
	if err := o.fill(req, args[1], inlineKey{count, min(period, maxSeconds) * second, capacityOf(burst)}, quantity); err != nil {
		return "Cell error: " + err.Error()
	}
	return ""
}

// redisCell appends the reply of CL.THROTTLE and of GCRA: limited, limit, remaining, and in
// seconds when to retry, -1 where that is no question, and when it is full.
func (r *reply) redisCell(d *limit.Decision) {
	limited, retry := int64(0), int64(-1)
	if !d.Allowed {
		limited = 1
		if d.RetryAfter != limit.Never {
			retry = ceilSeconds(d.RetryAfter)
		}
	}
	r.array(5)
	r.integer(limited)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.integer(retry)
	r.integer(ceilSeconds(d.ResetAfter))
}

// ceilSeconds turns milliseconds into seconds, rounded up.
func ceilSeconds(ms int64) int64 { return (ms + 999) / 1000 }

// maxGCRAPeriod is beyond the longest period that GCRA takes, in seconds.
const maxGCRAPeriod = 1e12

// parseGCRA reads GCRA key max_burst tokens_per_period period [TOKENS count], with the
// errors that the command had in Redis.
func (o *inlineLimits) parseGCRA(args [][]byte, req *limit.Request) (complaint string) {
	if len(args) < 5 || len(args) > 7 {
		return "ERR wrong number of arguments for 'gcra' command"
	}
	burst, err := strconv.ParseInt(alias(args[2]), 10, 64)
	if err != nil || burst < 0 {
		return "ERR max_burst is out of range"
	}
	tokens, complaint := gcraNumber(args[3], "tokens_per_period")
	if complaint != "" {
		return complaint
	}
	period, err := strconv.ParseFloat(alias(args[4]), 64)
	switch {
	case err != nil || math.IsNaN(period):
		return "ERR value is not a valid float"
	case period <= 0 || period >= maxGCRAPeriod:
		return "ERR period must be > 0 and < 1e12"
	}
	count := int64(1)
	if len(args) > 5 {
		switch {
		case !equalFold(args[5], "TOKENS"):
			return "ERR syntax error"
		case len(args) == 6:
			return "ERR Missing TOKENS value"
		}
		if count, complaint = gcraNumber(args[6], "TOKENS"); complaint != "" {
			return complaint
		}
	}
	if !validKey(args[1]) {
		return "ERR invalid key"
	}
	of := inlineKey{tokens, int64(max(1, math.Round(period*second))), capacityOf(burst)}
	if err := o.fill(req, args[1], of, count); err != nil {
		return "ERR GCRA limiting uses microsecond accuracy. Combination of period, tokens_per_period and TOKENS|max_burst would cause an overflow: " + err.Error()
	}
	return ""
}

// gcraNumber reads a whole number from 1.
func gcraNumber(arg []byte, name string) (n int64, complaint string) {
	n, err := strconv.ParseInt(alias(arg), 10, 64)
	switch {
	case err != nil:
		return 0, "ERR " + name + " is not an integer or out of range"
	case n < 1:
		return 0, "ERR " + name + " is out of range"
	default:
		return n, ""
	}
}

// parseThrottle reads THROTTLE key max_burst count_per_period period [quantity], with
// the errors of throttlecrab 0.4.
func (o *inlineLimits) parseThrottle(args [][]byte, req *limit.Request) (complaint string) {
	if len(args) != 5 && len(args) != 6 {
		return "ERR wrong number of arguments for 'throttle' command"
	}
	if !validKey(args[1]) {
		return "ERR invalid key"
	}
	n := [4]int64{3: 1}
	names := [...]string{"max_burst", "count_per_period", "period", "quantity"}
	for i, arg := range args[2:] {
		v, err := strconv.ParseInt(alias(arg), 10, 64)
		if least := int64(1); err != nil || v < least && (i != 3 || v < 0) {
			return "ERR invalid " + names[i]
		}
		n[i] = v
	}
	if err := o.fill(req, args[1], inlineKey{n[1], min(n[2], maxSeconds) * second, n[0]}, n[3]); err != nil {
		return "ERR " + err.Error()
	}
	return ""
}

// throttle appends the reply of THROTTLE: allowed, limit, remaining, and in whole
// seconds, cut off, reset and when to retry. Its reset is that of throttlecrab: when
// it would be full again, and what all units but two take to refill.
func (r *reply) throttle(d *limit.Decision, req *limit.Request) {
	allowed, retry := int64(1), int64(0)
	p := &req.Inline.Params
	if !d.Allowed {
		allowed, retry = 0, d.RetryAfter
		if retry == limit.Never {
			retry = d.ResetAfter + p.RefillTime(req.Cost-p.Capacity)/1000
		}
	}
	r.array(5)
	r.integer(allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.integer(max(0, d.ResetAfter+p.RefillTime(max(0, p.Capacity-2))/1000) / 1000)
	r.integer(retry / 1000)
}

// delCommand forgets buckets, as those users do who reset one, and answers how many
// there were.
func delCommand(ctx context.Context, s *Session, args [][]byte) {
	n := int64(0)
	for _, key := range args[1:] {
		if !validKey(key) {
			continue // no bucket has such a key
		}
		was, err := s.h.opts.Limiter.Forget(ctx, string(key))
		if err != nil {
			s.out.error("ERR not all keys were forgotten: " + quote([]byte(err.Error())))
			return
		}
		if was {
			n++
		}
	}
	s.out.integer(n)
}
