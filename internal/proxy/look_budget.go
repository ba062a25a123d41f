package proxy

import "time"

// lookBurst and looksPerSecond bound the requests of a plan that are compared with limits: each comparison is part of a decision, and
// BenchmarkSampledValues has the time of a long one. New sets do not renew them. Once the burst is used up, a look is at any request of
// the plan: a mistake in one of N requests is found after N looks on average.
const (
	lookBurst      = 1000
	looksPerSecond = 10
)

// lookBudget is a number of looks at requests; the zero value has all of the burst. It is not safe for concurrent use.
type lookBudget struct {
	left float64
	at   time.Time // of the last look
}

// take reports whether one more request may be looked at, and counts it if so.
func (b *lookBudget) take(now time.Time) bool {
	elapsed := max(0, now.Sub(b.at)) // the clock may be set back
	b.left, b.at = min(lookBurst, b.left+looksPerSecond*elapsed.Seconds()), now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// takeLook takes a look from the budget of a plan. Plans beyond sampledPlans, as they come and go, share one.
func takeLook(budgets map[string]*lookBudget, plan string, now time.Time) bool {
	if budgets[plan] == nil && len(budgets) >= sampledPlans {
		plan = ""
	}
	if budgets[plan] == nil {
		budgets[plan] = new(lookBudget)
	}
	return budgets[plan].take(now)
}
