package dynamo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/limitgate/limitgate/controlplane/table"
)

const (
	// receiveWait is how long the queue holds a request for messages, in seconds: the
	// longest that SQS allows.
	receiveWait = 20
	// retention is how long the queue of an absent proxy stores messages, in seconds:
	// after that time a scan returns the same changes.
	retention = 3600
	// queuePrefix begins the names of the queues that proxies create for themselves.
	queuePrefix = "limitgate-updates-"
	// tagTopic is the tag with the topic that such a queue is subscribed to.
	tagTopic = "topic"
)

// Queue delivers messages about changed items to one proxy, its only reader. One
// goroutine may use it.
type Queue struct {
	queues       *sqs.Client
	topics       *sns.Client
	url          string
	subscription string // of a queue made by Subscribe, else empty
	tags         map[string]string
	tagged       time.Time
}

// Subscribe creates a queue for this process and subscribes it to a topic. Close
// deletes it.
func Subscribe(ctx context.Context, config aws.Config, topic string) (*Queue, error) {
	q := &Queue{queues: sqs.NewFromConfig(config), topics: sns.NewFromConfig(config)}
	q.tags = map[string]string{"limitgate": "updates", tagTopic: topic, tagAlive: aliveAt(time.Now())}
	made, err := q.queues.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: aws.String(queuePrefix + rand.Text()),
		Attributes: map[string]string{
			string(types.QueueAttributeNameMessageRetentionPeriod): strconv.Itoa(retention),
		},
		Tags: q.tags,
	})
	if err != nil {
		return nil, fmt.Errorf("create queue: %w", err)
	}
	q.url = *made.QueueUrl
	if err := q.subscribe(ctx, topic); err != nil {
		_ = q.Close(ctx)
		return nil, err
	}
	return q, nil
}

// IsQueue reports whether a name of the updates is the URL of a queue. Otherwise it is the ARN
// of a topic.
func IsQueue(name string) bool { return strings.Contains(name, "://") }

// OpenQueue returns a queue that was created and subscribed elsewhere, with raw
// delivery, for this process alone.
func OpenQueue(config aws.Config, url string) *Queue {
	return &Queue{queues: sqs.NewFromConfig(config), url: url}
}

func (q *Queue) subscribe(ctx context.Context, topic string) error {
	got, err := q.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return fmt.Errorf("subscribe queue: %w", err)
	}
	arn := got.Attributes[string(types.QueueAttributeNameQueueArn)]
	policy, err := json.Marshal(map[string]any{
		"Version": "2012-10-17",
		"Statement": []any{map[string]any{
			"Effect": "Allow", "Principal": map[string]string{"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": arn,
			"Condition": map[string]any{"ArnEquals": map[string]string{"aws:SourceArn": topic}},
		}},
	})
	if err != nil {
		return fmt.Errorf("subscribe queue: %w", err)
	}
	if _, err := q.queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl: &q.url, Attributes: map[string]string{string(types.QueueAttributeNamePolicy): string(policy)},
	}); err != nil {
		return fmt.Errorf("subscribe queue: %w", err)
	}
	made, err := q.topics.Subscribe(ctx, &sns.SubscribeInput{
		TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: &arn, ReturnSubscriptionArn: true,
		Attributes: map[string]string{"RawMessageDelivery": "true"},
	})
	if err != nil {
		return fmt.Errorf("subscribe queue: %w", ofTopic(topic, q.topics.Options().Region, err))
	}
	q.subscription, q.tagged = *made.SubscriptionArn, time.Now()
	return nil
}

// aliveAt returns the value of tagAlive at a given time.
func aliveAt(now time.Time) string { return strconv.FormatInt(now.Unix(), 10) }

// tag updates tagAlive every aliveEvery, if Subscribe created the queue.
func (q *Queue) tag(ctx context.Context) error {
	now := time.Now()
	if q.topics == nil || now.Sub(q.tagged) < aliveEvery {
		return nil
	}
	q.tagged = now
	q.tags[tagAlive] = aliveAt(now)
	if _, err := q.queues.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: &q.url, Tags: q.tags}); err != nil { // all tags: the policy permits tagging by the tag of the topic
		return fmt.Errorf("tag queue: %w", err)
	}
	return nil
}

// isGone reports whether an error means that the queue does not exist.
func isGone(err error) bool {
	var gone *types.QueueDoesNotExist
	return errors.As(err, &gone)
}

// Receive waits for messages, for at most receiveWait seconds, and deletes them from
// the queue. Bad is the number of messages that it could not parse.
func (q *Queue) Receive(ctx context.Context) (messages []table.Message, bad int, err error) {
	if err := q.tag(ctx); err != nil {
		return nil, 0, err
	}
	got, err := q.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &q.url, MaxNumberOfMessages: maxBatch, WaitTimeSeconds: receiveWait})
	if err != nil {
		return nil, 0, fmt.Errorf("receive updates: %w", err)
	}
	if len(got.Messages) == 0 {
		return nil, 0, nil
	}
	var forget []types.DeleteMessageBatchRequestEntry
	for i, m := range got.Messages {
		var message table.Message
		if m.Body == nil || json.Unmarshal([]byte(*m.Body), &message) != nil {
			bad++
		} else {
			messages = append(messages, message)
		}
		forget = append(forget, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	// A message that is not deleted is received again, and is outdated then.
	if _, err := q.queues.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &q.url, Entries: forget}); err != nil {
		err = fmt.Errorf("delete received updates: %w", err)
		return messages, bad, err
	}
	return messages, bad, nil
}

// Close ends the subscription and deletes the queue, if Subscribe created them.
func (q *Queue) Close(ctx context.Context) error {
	if q.topics == nil {
		return nil
	}
	var errs []error
	if q.subscription != "" {
		_, err := q.topics.Unsubscribe(ctx, &sns.UnsubscribeInput{SubscriptionArn: &q.subscription})
		errs = append(errs, err)
	}
	_, err := q.queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &q.url})
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("close queue: %w", err)
	}
	return nil
}
