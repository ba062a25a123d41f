package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
)

// loadAWS finds region, endpoint and credentials as AWS's own tools find them. What the
// SDK would print by itself is in this program's errors.
func loadAWS(ctx context.Context) (aws.Config, error) {
	c, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}))
	if err != nil {
		return c, fmt.Errorf("configure AWS: %w", err)
	}
	if c.Region == "" {
		return c, fmt.Errorf("configure AWS: no region is set: say AWS_REGION, or a profile that has one")
	}
	return c, nil
}
