package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/limitgate/limitgate/controlplane/table"
)

// Subscription is a queue of this process that is created when it is first needed, so
// that a proxy starts without AWS. One goroutine may use it.
type Subscription struct {
	config aws.Config
	topic  string
	queue  *Queue
}

// NewSubscription returns a subscription to a topic.
func NewSubscription(config aws.Config, topic string) *Subscription {
	return &Subscription{config: config, topic: topic}
}

// Open creates the queue and subscribes it, unless that is done.
func (s *Subscription) Open(ctx context.Context) (err error) {
	if s.queue == nil {
		s.queue, err = Subscribe(ctx, s.config, s.topic)
	}
	return err
}

// Receive waits for messages, see Queue.Receive. If it had to create the queue first,
// it returns table.ErrMissed. If the queue was deleted, the next call creates another
// one.
func (s *Subscription) Receive(ctx context.Context) (messages []table.Message, bad int, err error) {
	if s.queue == nil {
		if err := s.Open(ctx); err != nil {
			return nil, 0, err
		}
		return nil, 0, table.ErrMissed
	}
	messages, bad, err = s.queue.Receive(ctx)
	if isGone(err) {
		_ = s.queue.Close(ctx) // deletes the subscription of the deleted queue
		s.queue = nil
	}
	return messages, bad, err
}

// Renew deletes the queue, so that the next Receive creates and subscribes another one.
func (s *Subscription) Renew(ctx context.Context) {
	if s.queue != nil {
		_ = s.queue.Close(ctx) // if that fails, a control plane deletes the queue
		s.queue = nil
	}
}

// Close ends the subscription, if there is one.
func (s *Subscription) Close(ctx context.Context) error {
	if s.queue == nil {
		return nil
	}
	return s.queue.Close(ctx)
}
