package commands

import (
	"context"
	"fmt"
	"math"

	"github.com/limitgate/limitgate/limiter"
)

const (
	// defaultListed and maxListed bound the rows of RL.TOP and RL.DENIED.
	defaultListed = 10
	maxListed     = 100
)

// listed parses the optional number of rows of a command. It returns false after it has replied
// with an error.
func (s *Session) listed(name string, args [][]byte) (n int, ok bool) {
	if len(args) > 2 {
		s.out.error(s.h.wrongNumber(name, args))
		return 0, false
	}
	if len(args) < 2 {
		return defaultListed, true
	}
	rows, ok := parseCost(args[1])
	if !ok || rows > maxListed {
		s.out.error(fmt.Sprintf("ERR n must be an integer between 1 and %d, the number of rows%s", maxListed, otherList(args[1])))
		return 0, false
	}
	return int(rows), true
}

// otherList names the command whose replies a word for a list means.
func otherList(word []byte) string {
	if equalFold(word, "DENIED") {
		return "; RL.DENIED has the last denials"
	}
	return ""
}

// perSecond rounds a rate up, so that none looks like 0, to hundredths or, from ten on, to a whole number.
func perSecond(rate float64) float64 {
	if rate <= 0 {
		return 0 // and not -0
	}
	if rate < 10 {
		return math.Ceil(rate*100-1e-9) / 100 // 1.1 is a little more in binary
	}
	return math.Ceil(rate)
}

// topCommand replies with a map: the buckets requested most, those that deny most, those of shadow
// limits that would, the operations requested most, and whether the rates may be too low.
func topCommand(_ context.Context, s *Session, args [][]byte) {
	n, ok := s.listed("rl.top", args)
	if !ok {
		return
	}
	top := s.h.opts.Limiter.Top(n)
	s.out.mapping(5)
	for _, part := range []struct {
		name    string
		buckets []limiter.HotBucket
	}{{"hot", top.Hot}, {"denied", top.Denied}, {"would_deny", top.WouldDeny}} {
		s.out.bulk(part.name)
		s.out.array(len(part.buckets))
		for _, b := range part.buckets {
			s.out.mapping(3)
			s.out.pair("bucket", b.Bucket)
			s.out.pair("limit_id", b.Limit)
			s.out.pair("per_second", perSecond(b.Rate))
		}
	}
	s.out.bulk("operations")
	s.out.array(len(top.Operations))
	for _, o := range top.Operations {
		s.out.mapping(4)
		s.out.pair("op", o.Operation)
		s.out.pair("per_second", perSecond(o.Rate))
		s.out.pair("denied_per_second", perSecond(o.Denied))
		s.out.pair("would_deny_per_second", perSecond(o.WouldDeny))
	}
	atLeast := int64(0)
	if top.AtLeast {
		atLeast = 1
	}
	s.out.pair("at_least", atLeast)
}

// deniedCommand replies with the last denials of the sample, the newest first.
func deniedCommand(_ context.Context, s *Session, args [][]byte) {
	n, ok := s.listed("rl.denied", args)
	if !ok {
		return
	}
	last := s.h.opts.Denials(n)
	s.out.array(len(last))
	for i := range last {
		d := &last[i]
		s.out.mapping(14)
		s.out.pair("at_ms", d.At.UnixMilli())
		s.out.pair("tenant", d.Tenant)
		s.out.pair("op", d.Operation)
		s.out.pair("address", d.Address)
		s.out.pair("limit_id", d.Limit)
		s.out.pair("plan", d.Plan)
		s.out.pair("mode", d.Mode)
		s.out.pair("source", d.Source)
		s.out.pair("cost", d.Cost)
		s.out.pair("capacity", d.Capacity)
		s.out.pair("remaining", d.Remaining)
		s.out.pair("retry_after_ms", d.RetryAfter)
		s.out.pair("trial", d.Trial)
		s.out.pair("key", d.Key)
	}
}
