package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/limitgate/limitgate/controlplane/table"
)

// maxBatch is how many messages SNS and SQS accept and return at once.
const maxBatch = 10

// Topic sends messages about changed items to all proxies. Any number of goroutines may
// use it.
type Topic struct {
	client *sns.Client
	arn    string
}

// NewTopic returns the SNS topic with an ARN.
func NewTopic(config aws.Config, topic string) *Topic {
	return &Topic{sns.NewFromConfig(config), topic}
}

// ofTopic replaces the error of SNS for a topic that does not exist by a clearer one.
func ofTopic(topic, region string, err error) error {
	if missing := (*types.NotFoundException)(nil); !errors.As(err, &missing) {
		return err
	}
	if of, parseErr := arn.Parse(topic); parseErr == nil && of.Region != region {
		return fmt.Errorf("there is no topic %s in the region %s: set AWS_REGION to %s, or check its ARN", topic, region, of.Region)
	}
	return fmt.Errorf("there is no topic %s: check its ARN", topic)
}

// topicTimeout bounds Check.
const topicTimeout = 5 * time.Second

// Check returns an error if the topic does not exist. Other failures are those of the first message.
func (t *Topic) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	_, err := t.client.ListSubscriptionsByTopic(ctx, &sns.ListSubscriptionsByTopicInput{TopicArn: &t.arn}) // a right that the sweeper needs anyway
	if missing := (*types.NotFoundException)(nil); !errors.As(err, &missing) {
		return nil
	}
	return ofTopic(t.arn, t.client.Options().Region, err)
}

// maxBytes bounds the messages of a batch together, with some room for the envelope
// around them.
const maxBytes = 250_000

// Publish sends messages in order, ten at a time, and returns how many were sent. In
// place of an item that is too large for a message it sends a message with Reread.
func (t *Topic) Publish(ctx context.Context, messages []table.Message) (sent int, err error) {
	for sent < len(messages) {
		entries, err := batchOf(messages[sent:])
		if err != nil {
			return sent, err
		}
		out, err := t.client.PublishBatch(ctx, &sns.PublishBatchInput{TopicArn: &t.arn, PublishBatchRequestEntries: entries})
		if err != nil {
			return sent, fmt.Errorf("publish updates: %w", ofTopic(t.arn, t.client.Options().Region, err))
		}
		if len(out.Failed) > 0 {
			first := len(entries)
			for _, refused := range out.Failed {
				if n, err := strconv.Atoi(aws.ToString(refused.Id)); err == nil {
					first = min(first, n)
				}
			}
			return sent + first%len(entries), fmt.Errorf("publish updates: %d of %d were refused, the first: %s", len(out.Failed), len(entries), aws.ToString(out.Failed[0].Message))
		}
		sent += len(entries)
	}
	return sent, nil
}

// batchOf returns the entries of as many of the first messages as fit into one batch.
func batchOf(messages []table.Message) (entries []types.PublishBatchRequestEntry, err error) {
	size := 0
	for i, m := range messages[:min(len(messages), maxBatch)] {
		body, err := json.Marshal(m)
		if err == nil && len(body) > maxBytes {
			body, err = json.Marshal(table.Message{Reread: true, At: m.At})
		}
		if err != nil {
			return nil, fmt.Errorf("publish updates: %w", err)
		}
		if size += len(body); size > maxBytes {
			break
		}
		entries = append(entries, types.PublishBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), Message: aws.String(string(body))})
	}
	return entries, nil
}
