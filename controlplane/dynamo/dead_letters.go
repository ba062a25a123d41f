package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/limitgate/limitgate/controlplane/table"
)

// maxLetter bounds a letter, in bytes: SQS takes 256 KiB.
const maxLetter = 200_000

// DeadLetters is a queue of changes that could not be handled. Any number of goroutines
// may use it.
type DeadLetters struct {
	client *sqs.Client
	url    string
}

// NewDeadLetters returns the queue with a URL.
func NewDeadLetters(config aws.Config, url string) *DeadLetters {
	return &DeadLetters{sqs.NewFromConfig(config), url}
}

// checkTimeout bounds Check: a start does not wait for an SQS that does not answer.
const checkTimeout = 5 * time.Second

// Check returns an error if SQS says that the queue does not exist, which it says of one of another account, too, that it does not let the
// caller look at. It returns nil if SQS does not answer or denies access.
func (d *DeadLetters) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	_, err := d.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &d.url})
	if isGone(err) {
		return fmt.Errorf("look for the queue of dead letters, %s: %w", d.url, err)
	}
	return nil
}

// letter is the body of a message.
type letter struct {
	Key      string      `json:"key"`
	Sequence string      `json:"sequence"`
	Why      string      `json:"why"`
	Before   *table.Item `json:"before,omitempty"`
	After    *table.Item `json:"after,omitempty"`
}

// Send sends a change, and why it could not be handled. If the letter is too large, it
// leaves out the items.
func (d *DeadLetters) Send(ctx context.Context, r *table.Record, why string) error {
	body, err := json.Marshal(letter{r.Key(), r.Sequence, why, r.Before, r.After})
	if err == nil && len(body) > maxLetter {
		body, err = json.Marshal(letter{Key: r.Key(), Sequence: r.Sequence, Why: why})
	}
	if err != nil {
		return fmt.Errorf("send dead letter: %w", err)
	}
	if _, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &d.url, MessageBody: aws.String(string(body))}); err != nil {
		return fmt.Errorf("send dead letter to %s: %w", d.url, err)
	}
	return nil
}
