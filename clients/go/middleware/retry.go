package middleware

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Retry is how a client comes back that was denied.
type Retry struct {
	// Attempts is the maximum number of attempts; 0 is 4.
	Attempts int
	// Base bounds the first random wait, and doubles; 0 is 200 ms.
	Base time.Duration
	// MaxWait is the longest wait; where more is asked for, Do gives up. 0 is a minute.
	MaxWait time.Duration
	// random returns a number from 0 to 1, and wait waits; tests replace them.
	random func() float64
	wait   func(ctx context.Context, d time.Duration) error
}

// Do calls attempt until it returns a response that is neither 429 nor 503. It waits for
// Retry-After and a random time more, so that clients that were denied together do not come back
// together. It returns the last response, whose body the caller closes; the bodies of others are
// closed. The error is that of attempt or of ctx.
func (r Retry) Do(ctx context.Context, attempt func(context.Context) (*http.Response, error)) (*http.Response, error) {
	r.setDefaults()
	for n := 1; ; n++ {
		answer, err := attempt(ctx)
		if err != nil {
			return nil, fmt.Errorf("attempt %d: %w", n, err)
		}
		denied := answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable
		if !denied || n >= r.Attempts {
			return answer, nil
		}
		bound := min(r.MaxWait, r.Base<<min(n-1, 30))
		wait := time.Duration(r.random() * float64(bound)) // full jitter
		seconds, err := strconv.ParseInt(answer.Header.Get("Retry-After"), 10, 64)
		if err == nil && seconds > 0 {
			if seconds > int64(r.MaxWait/time.Second) {
				return answer, nil
			}
			wait += time.Duration(seconds) * time.Second
		}
		if wait > r.MaxWait {
			return answer, nil
		}
		_ = answer.Body.Close()
		if err := r.wait(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (r *Retry) setDefaults() {
	if r.Attempts == 0 {
		r.Attempts = 4
	}
	if r.Base == 0 {
		r.Base = 200 * time.Millisecond
	}
	if r.MaxWait == 0 {
		r.MaxWait = time.Minute
	}
	if r.random == nil {
		r.random = rand.Float64
	}
	if r.wait == nil {
		r.wait = sleep
	}
}

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait to retry: %w", ctx.Err())
	}
}
