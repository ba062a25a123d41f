// Package awsclient configures clients of AWS as all programs here want them: found as AWS's
// own tools find them, patient where AWS asks for that, and never waiting for ever.
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

// awsCall bounds one request, its answer included: longer than SQS holds one for messages.
// Where a connection is lost without a word nothing else would end the wait.
const awsCall = 25 * time.Second

// credentialsCall bounds one request for the credentials of a container, which come from the same
// machine. The SDK has no bound for it, and signs nothing before it is over.
const credentialsCall = 5 * time.Second

const (
	// throttleAttempts is how often a request is made that AWS refuses for being too many:
	// with the pauses between them for half a minute or so. AWS_MAX_ATTEMPTS lowers it.
	throttleAttempts = 30
	// throttlePause bounds the first pause; each next bound is twice as long, up to
	// pauseMost.
	throttlePause = 25 * time.Millisecond
	pauseMost     = 2 * time.Second
	// faultAttempts is how often a request is made that fails otherwise, and faultPause
	// bounds the first pause: who waits for AWS has something else to do when it is away,
	// such as to start from a snapshot.
	faultAttempts = 3
	faultPause    = 400 * time.Millisecond
)

// Load finds region, endpoint and credentials as AWS's own tools find them. What the
// SDK would print by itself is in this program's errors.
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
	env, err := awsconfig.NewEnvConfig()
	if err != nil {
		return c, fmt.Errorf("configure AWS: %w", err)
	}
	c.RetryMaxAttempts = env.RetryMaxAttempts // which the SDK leaves out where it is given a retryer
	if c.Region == "" {
		return c, fmt.Errorf("configure AWS: no region is set: say AWS_REGION, or a profile that has one")
	}
	return c, nil
}

// retryer makes requests again that were throttled until they are not any more, and others
// that failed a few times.
type retryer struct {
	*retry.Standard
	throttled retry.IsErrorThrottles
}

// newRetryer returns one without the SDK's budget of retries: that is empty after the first
// hundred, and then all that is throttled fails. The pauses keep the peace.
func newRetryer() *retryer {
	return &retryer{
		retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.RateLimiter = throttleAttempts, ratelimit.None }),
		retry.DefaultThrottles,
	}
}

// RetryDelay returns how long to pause after an attempt that failed, counted from 1, or
// the failure where there is to be no other one.
func (r *retryer) RetryDelay(attempt int, err error) (time.Duration, error) {
	pause := throttlePause
	if r.throttled.IsErrorThrottle(err) != aws.TrueTernary {
		if pause = faultPause; attempt >= faultAttempts {
			return 0, err
		}
	}
	return rand.N(min(pauseMost, pause<<min(max(attempt, 1)-1, throttleAttempts))), nil
}
