package dynamo

import (
	"context"
	"encoding/json"
	"fmt"

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
		return fmt.Errorf("send dead letter: %w", err)
	}
	return nil
}
