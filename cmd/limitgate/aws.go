package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// awsCall bounds one request, its answer included: longer than SQS holds one for messages.
// Where a connection is lost without a word nothing else would end the wait.
const awsCall = 25 * time.Second

// loadAWS finds region, endpoint and credentials as AWS's own tools find them. What the
// SDK would print by itself is in this program's errors.
func loadAWS(ctx context.Context) (aws.Config, error) {
	c, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}), awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(awsCall)))
	if err != nil {
		return c, fmt.Errorf("configure AWS: %w", err)
	}
	if c.Region == "" {
		return c, fmt.Errorf("configure AWS: no region is set: say AWS_REGION, or a profile that has one")
	}
	return c, nil
}
