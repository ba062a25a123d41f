package reference

import "math/big"

// admitted names the limit with the least left in proportion to its capacity. Of equal
// ones the first binds.
func admitted(now int64, buckets []*asked) Decision {
	var bound *asked
	var least *big.Rat
	for _, a := range buckets {
		part := big.NewRat(remaining(a.bucket.content(now)), a.terms.capacity)
		if bound == nil || part.Cmp(least) < 0 {
			bound, least = a, part
		}
	}
	if bound == nil {
		return Decision{Allowed: true, Limit: -1, Remaining: -1, Policy: true}
	}
	d := bound.decision(now)
	d.Allowed = true
	return d
}

// denied names the limit that denies for the longest. Of equal ones the first binds.
//
// Not documented: the wait of a limit of concurrency is the time until enough slots are
// free at the latest. The reply has at most a second there, which changes neither the
// true wait nor which limit binds.
func denied(now int64, buckets []*asked) Decision {
	var bound *asked
	for _, a := range buckets {
		if !a.fits && (bound == nil || longer(a.wait, bound.wait)) {
			bound = a
		}
	}
	d := bound.decision(now)
	d.RetryAfter = bound.wait
	return d
}

// longer reports whether a wait is longer than another. -1 is the longest.
func longer(a, b int64) bool {
	return b >= 0 && (a < 0 || a > b)
}

// decision returns a decision with the values of the limit that bound it.
func (a *asked) decision(now int64) Decision {
	return Decision{
		Limit:      a.terms.capacity,
		Remaining:  remaining(a.bucket.content(now)),
		ResetAfter: wait(a.bucket, now, a.terms.capacity),
		LimitID:    a.id,
	}
}

// refusal is the decision if a limit refuses without a bucket: by the first such limit,
// before any bucket is used.
//
// Not documented: a ban has the capacity 0, and missing: deny that of its limit. Nothing
// remains of either, and neither takes time to be full.
func refusal(c *considered) Decision {
	return Decision{Limit: c.terms.capacity, RetryAfter: -1, LimitID: c.id, Policy: true}
}
