package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/limitgate/limitgate/table"
)

// maxBatch is how many messages SNS and SQS take and give at once.
const maxBatch = 10

// Topic tells all proxies of items that have changed. Any number of goroutines may use it.
type Topic struct {
	client *sns.Client
	arn    string
}

// NewTopic returns the SNS topic with an ARN.
func NewTopic(config aws.Config, arn string) *Topic { return &Topic{sns.NewFromConfig(config), arn} }

// Publish sends messages, ten at a time. With an error some of them may have been sent.
func (t *Topic) Publish(ctx context.Context, messages []table.Message) error {
	for len(messages) > 0 {
		n := min(len(messages), maxBatch)
		entries := make([]types.PublishBatchRequestEntry, n)
		for i := range entries {
			body, err := json.Marshal(messages[i])
			if err != nil {
				return fmt.Errorf("publish updates: %w", err)
			}
			entries[i] = types.PublishBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), Message: aws.String(string(body))}
		}
		out, err := t.client.PublishBatch(ctx, &sns.PublishBatchInput{TopicArn: &t.arn, PublishBatchRequestEntries: entries})
		if err != nil {
			return fmt.Errorf("publish updates: %w", err)
		}
		if len(out.Failed) > 0 {
			return fmt.Errorf("publish updates: %d of %d were refused, the first for %s", len(out.Failed), n, aws.ToString(out.Failed[0].Message))
		}
		messages = messages[n:]
	}
	return nil
}
