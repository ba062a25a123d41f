package awsclient

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// TestMaxAttempts: AWS_MAX_ATTEMPTS sets how often a request is sent, whatever the
// failure.
func TestMaxAttempts(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}
	for value, want := range map[string]int64{"": faultAttempts, "1": 1, "2": 2} {
		t.Setenv("AWS_MAX_ATTEMPTS", value)
		c, err := Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		asked.Store(0)
		if _, err := sqs.NewFromConfig(c).ListQueues(t.Context(), &sqs.ListQueuesInput{}); err == nil {
			t.Error("there is an answer")
		}
		if n := asked.Load(); n != want {
			t.Errorf("with AWS_MAX_ATTEMPTS %q it is asked %d times, want %d", value, n, want)
		}
	}
}

// TestRetries: throttled requests are retried for half a minute or so, others not for
// long, and each pause is bounded.
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
