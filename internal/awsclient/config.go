// Package awsclient configures AWS clients for all programs of this module. They find
// credentials like AWS's own tools, retry throttled requests for long, and have a
// timeout for every request.
package awsclient

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/smithy-go/logging"
)

// Timeout bounds the calls of AWS at start, at shutdown and on behalf of people.
const Timeout = 30 * time.Second

// awsCall bounds one request, response included. It is longer than SQS holds a request
// for messages. Without it a connection that is lost silently would block for ever.
const awsCall = 25 * time.Second

// credentialsCall bounds one request for the credentials of a container, which come
// from the same machine. The SDK has no bound for it, and signs no request before it is
// over.
const credentialsCall = 5 * time.Second

const (
	// throttleAttempts is how often a throttled request is sent: with the pauses in
	// between, for half a minute or so. AWS_MAX_ATTEMPTS lowers it.
	throttleAttempts = 30
	// throttlePause bounds the first pause; each next bound is twice as long, up to
	// pauseMost.
	throttlePause = 25 * time.Millisecond
	pauseMost     = 2 * time.Second
	// faultAttempts is how often a request is sent that fails otherwise, and faultPause
	// bounds the first pause. It is low because callers have an alternative when AWS
	// fails, such as to start from a snapshot.
	faultAttempts = 3
	faultPause    = 400 * time.Millisecond
)

// Load finds region, endpoint and credentials like AWS's own tools. The SDK's logger is
// off: the errors of this program contain the same.
func Load(ctx context.Context) (aws.Config, error) {
	c, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}),
		awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(awsCall)),
		awsconfig.WithEndpointCredentialOptions(func(o *endpointcreds.Options) {
			o.HTTPClient = awshttp.NewBuildableClient().WithTimeout(credentialsCall)
		}),
		awsconfig.WithRetryer(func() aws.Retryer { return newRetryer() }))
	if err != nil {
		return c, fmt.Errorf("configure AWS: %w", err)
	}
	c.HTTPClient = boundedClient{c.HTTPClient}
	env, err := awsconfig.NewEnvConfig()
	if err != nil {
		return c, fmt.Errorf("configure AWS: %w", err)
	}
	c.RetryMaxAttempts = env.RetryMaxAttempts // the SDK ignores it if given a retryer
	if c.Region == "" {
		return c, fmt.Errorf("configure AWS: no region: set AWS_REGION, or a profile that has one")
	}
	return c, nil
}

// retryer retries throttled requests until they succeed, up to throttleAttempts, and
// other failures a few times.
type retryer struct {
	*retry.Standard
	throttled retry.IsErrorThrottles
}

// newRetryer returns a retryer without the SDK's retry budget, which is empty after the
// first hundred retries, so that every throttled request fails then. The pauses limit
// the load instead.
func newRetryer() *retryer {
	return &retryer{
		retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.RateLimiter = throttleAttempts, ratelimit.None }),
		retry.DefaultThrottles,
	}
}

// RetryDelay returns the pause after a failed attempt, counted from 1, or the failure
// if there is to be no other attempt.
func (r *retryer) RetryDelay(attempt int, err error) (time.Duration, error) {
	pause := throttlePause
	if r.throttled.IsErrorThrottle(err) != aws.TrueTernary {
		if pause = faultPause; attempt >= faultAttempts {
			return 0, err
		}
	}
	return rand.N(min(pauseMost, pause<<min(max(attempt, 1)-1, throttleAttempts))), nil
}
