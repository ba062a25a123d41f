package awsclient

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/smithy-go"
)

// TestRetries: what is throttled is tried for half a minute or so, what fails otherwise
// not for long, and each pause is bounded.
func TestRetries(t *testing.T) {
	r := newRetryer()
	throttled := fmt.Errorf("put: %w", &smithy.GenericAPIError{Code: "ProvisionedThroughputExceededException"})
	var longest time.Duration
	for attempt := 1; attempt < r.MaxAttempts(); attempt++ {
		bound := min(pauseMost, throttlePause<<(attempt-1))
		longest += bound
		if pause, err := r.RetryDelay(attempt, throttled); err != nil || pause < 0 || pause >= bound {
			t.Errorf("after attempt %d: %s, %v", attempt, pause, err)
		}
	}
	if longest < 30*time.Second || longest > time.Minute {
		t.Errorf("what is throttled is tried for up to %s", longest)
	}
	if !r.IsErrorRetryable(throttled) {
		t.Error("what is throttled is not tried again")
	}
	away := errors.New("connection refused")
	for attempt, again := range map[int]bool{1: true, 2: true, 3: false, 4: false} {
		if _, err := r.RetryDelay(attempt, away); (err == nil) != again || err != nil && !errors.Is(err, away) {
			t.Errorf("after attempt %d of what fails: %v", attempt, err)
		}
	}
	for range 10_000 { // no budget that many requests share
		if _, err := r.GetRetryToken(t.Context(), throttled); err != nil {
			t.Fatal(err)
		}
	}
}
