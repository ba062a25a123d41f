package commands

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// maxInlineLimits is the maximum number of inline limits that are kept compiled: services
// use a handful. At about 600 bytes each this is 2 MB.
const maxInlineLimits = 4096

// inlineLimits compiles and caches the inline limits of the dialects of other limiters:
// requests with the same limit are decided in one call. It is safe for concurrent use.
type inlineLimits struct {
	known *lru.Cache[inlineKey, *limit.Limit]
}

// inlineKey identifies a limit: count units in period microseconds, and capacity.
type inlineKey struct{ count, period, capacity int64 }

func newInlineLimits() *inlineLimits {
	known, err := lru.New[inlineKey, *limit.Limit](maxInlineLimits)
	if err != nil {
		panic(err) // lru.New fails only for a size that is not positive
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

// fill sets req from a key, a limit and a quantity, or returns an error. A quantity
// larger than any bucket is denied like any other that does not fit.
func (o *inlineLimits) fill(req *limit.Request, key []byte, of inlineKey, quantity int64) error {
	l, err := o.limit(of)
	if err != nil {
		return err
	}
	*req = limit.Request{Inline: l, Key: alias(key), Cost: min(quantity, maxQuantity)}
	return nil
}

// maxQuantity is larger than any bucket, and still counted exactly.
const maxQuantity = bucket.MaxCapacity + 1

const (
	second = 1_000_000 // in microseconds
	// maxSeconds is the longest period in seconds that is distinguished from longer ones:
	// it exceeds the maximum of a limit, and does not overflow.
	maxSeconds = math.MaxInt64 / second
)

// capacityOf returns the capacity of a bucket with a burst: one more, as the first
// request is not part of the burst. The largest burst has no successor, and is rejected
// unchanged.
func capacityOf(burst int64) int64 { return max(burst, burst+1) }

// burstText returns the text of an error of fill, with the burst as these dialects have it: without the first request.
func burstText(err error) string {
	var burst *bucket.BurstError
	if errors.As(err, &burst) {
		return fmt.Sprintf("max_burst %d at %s would take more than 35 years to fill: the largest is %d", burst.Burst-1, burst.Rate, burst.Largest-1)
	}
	return err.Error()
}

// validKey reports whether a key is valid: 1 to limit.MaxKeyBytes of any bytes.
func validKey(key []byte) bool { return len(key) > 0 && len(key) <= limit.MaxKeyBytes }

const (
	redisCellUsage    = "Cell error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	redisCellZeroRate = "Cell error: Zero rates are not supported"
)

// parseRedisCell parses CL.THROTTLE key max_burst count period [quantity], with the
// errors of redis-cell 0.5.0. Negative numbers, which redis-cell miscomputes, are an
// error here.
func (o *inlineLimits) parseRedisCell(args [][]byte, req *limit.Request) (errReply string) {
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
		return "Cell error: " + burstText(err)
	}
	return ""
}

// redisCell appends the reply of CL.THROTTLE and of GCRA: limited, limit, remaining, and
// in seconds the time until a retry, -1 if there is none to wait for, and until full.
func (r *reply) redisCell(d *limit.Decision) {
	limited, retry := int64(0), int64(-1)
	if !d.Allowed {
		limited = 1
		if d.RetryAfter != bucket.Never {
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

// ceilSeconds converts milliseconds to seconds, rounded up.
func ceilSeconds(ms int64) int64 { return (ms + 999) / 1000 }

// maxGCRAPeriod exceeds the longest period that GCRA accepts, in seconds.
const maxGCRAPeriod = 1e12

// parseGCRA parses GCRA key max_burst tokens_per_period period [TOKENS count], with the
// errors that the command had in Redis.
func (o *inlineLimits) parseGCRA(args [][]byte, req *limit.Request) (errReply string) {
	if len(args) < 5 || len(args) > 7 {
		return "ERR wrong number of arguments for 'gcra' command: GCRA key max_burst tokens_per_period period [TOKENS count]"
	}
	burst, err := strconv.ParseInt(alias(args[2]), 10, 64)
	if err != nil || burst < 0 {
		return "ERR max_burst is out of range"
	}
	tokens, errReply := gcraNumber(args[3], "tokens_per_period")
	if errReply != "" {
		return errReply
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
			return "ERR syntax error: write TOKENS in front of the number of units"
		case len(args) == 6:
			return "ERR Missing TOKENS value"
		}
		if count, errReply = gcraNumber(args[6], "TOKENS"); errReply != "" {
			return errReply
		}
	}
	if !validKey(args[1]) {
		return "ERR invalid key"
	}
	of := inlineKey{tokens, int64(max(1, math.Round(period*second))), capacityOf(burst)}
	if err := o.fill(req, args[1], of, count); err != nil {
		return "ERR GCRA limiting uses microsecond accuracy. Combination of period, tokens_per_period and TOKENS|max_burst would cause an overflow: " + burstText(err)
	}
	return ""
}

// gcraNumber parses an integer from 1.
func gcraNumber(arg []byte, name string) (n int64, errReply string) {
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

// parseThrottle parses THROTTLE key max_burst count_per_period period [quantity], with
// the errors of throttlecrab 0.4, and what is right.
func (o *inlineLimits) parseThrottle(args [][]byte, req *limit.Request) (errReply string) {
	if len(args) != 5 && len(args) != 6 {
		return "ERR wrong number of arguments for 'throttle' command: THROTTLE key max_burst count_per_period period [quantity]"
	}
	if !validKey(args[1]) {
		return "ERR invalid key"
	}
	n := [4]int64{3: 1}
	names := [...]string{"max_burst", "count_per_period", "period", "quantity"}
	for i, arg := range args[2:] {
		v, err := strconv.ParseInt(alias(arg), 10, 64)
		least := int64(1)
		if i == 3 {
			least = 0
		}
		if err != nil || v < least {
			return fmt.Sprintf("ERR invalid %s: it is a whole number from %d to %d", names[i], least, int64(math.MaxInt64))
		}
		n[i] = v
	}
	if err := o.fill(req, args[1], inlineKey{n[1], min(n[2], maxSeconds) * second, n[0]}, n[3]); err != nil {
		return "ERR " + err.Error()
	}
	return ""
}

// throttle appends the reply of THROTTLE: allowed, limit, remaining, and in whole
// seconds, truncated, reset and retry. Reset is that of throttlecrab: the time until the
// bucket is full again, plus the time in which all units but two refill.
func (r *reply) throttle(d *limit.Decision, req *limit.Request) {
	allowed, retry := int64(1), int64(0)
	p := &req.Inline.Params
	if !d.Allowed {
		allowed, retry = 0, d.RetryAfter
		if retry == bucket.Never {
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

// delCommand removes buckets, for clients that reset a limit with DEL, and replies with
// their number.
func delCommand(ctx context.Context, s *Session, args [][]byte) {
	n := int64(0)
	for _, key := range args[1:] {
		if !validKey(key) {
			continue // no bucket has such a key
		}
		was, err := s.h.opts.Limiter.Forget(ctx, string(key))
		if err != nil {
			s.out.error("ERR not all keys were forgotten: " + storeReason(err))
			return
		}
		if was {
			n++
		}
	}
	s.out.integer(n)
}
