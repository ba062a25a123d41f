package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	// tagAlive is the tag that says when a proxy was last there for its queue, in seconds
	// since the epoch, and aliveEvery how often it is set.
	tagAlive   = "alive"
	aliveEvery = 10 * time.Minute
	// orphanAfter is how old that may be: a proxy that cannot tag its queue for so long, and
	// lives, makes another one.
	orphanAfter = time.Hour
	// SweepEvery is how often queues of dead proxies are to be looked for.
	SweepEvery = 10 * time.Minute
)

// Sweeper takes away the queues that proxies left behind when they died. Any number of
// goroutines may use it.
type Sweeper struct {
	queues *sqs.Client
	topics *sns.Client
	topic  string
}

// NewSweeper returns the sweeper of the queues of a topic.
func NewSweeper(config aws.Config, topic string) *Sweeper {
	return &Sweeper{sqs.NewFromConfig(config), sns.NewFromConfig(config), topic}
}

// Sweep takes queues of the topic away for which no proxy was there for an hour, with their
// subscriptions, and subscriptions of queues that are gone. It returns how many.
func (s *Sweeper) Sweep(ctx context.Context, now time.Time) (swept int, err error) {
	var errs []error
	pages := sns.NewListSubscriptionsByTopicPaginator(s.topics, &sns.ListSubscriptionsByTopicInput{TopicArn: &s.topic})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return swept, fmt.Errorf("list subscriptions: %w", err)
		}
		for _, one := range page.Subscriptions {
			name := queueName(aws.ToString(one.Endpoint))
			if !strings.HasPrefix(name, queuePrefix) {
				continue
			}
			orphan, url, err := s.isOrphan(ctx, name, now)
			if err == nil && orphan {
				if err = s.take(ctx, aws.ToString(one.SubscriptionArn), url); err == nil {
					swept++
				}
			}
			errs = append(errs, err) // one that may not be read keeps no other
		}
	}
	return swept, errors.Join(errs...)
}

// queueName returns the name of the queue with an ARN.
func queueName(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }

// isOrphan reports whether no proxy was there for a queue for a while, and returns its URL,
// empty where it is gone.
func (s *Sweeper) isOrphan(ctx context.Context, name string, now time.Time) (orphan bool, url string, err error) {
	found, err := s.queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if isGone(err) {
		return true, "", nil
	}
	if err != nil {
		return false, "", fmt.Errorf("find queue %s: %w", name, err)
	}
	url = aws.ToString(found.QueueUrl)
	out, err := s.queues.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if isGone(err) {
		return true, "", nil
	}
	if err != nil {
		return false, url, fmt.Errorf("read tags of queue %s: %w", name, err)
	}
	alive, err := strconv.ParseInt(out.Tags[tagAlive], 10, 64)
	return err == nil && out.Tags[tagTopic] == s.topic && now.Sub(time.Unix(alive, 0)) >= orphanAfter, url, nil
}

// take takes a subscription away, and its queue if that is there.
func (s *Sweeper) take(ctx context.Context, subscription, url string) error {
	if _, err := s.topics.Unsubscribe(ctx, &sns.UnsubscribeInput{SubscriptionArn: &subscription}); err != nil {
		return fmt.Errorf("sweep %s: %w", subscription, err)
	}
	if url == "" {
		return nil
	}
	if _, err := s.queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url}); err != nil && !isGone(err) {
		return fmt.Errorf("sweep %s: %w", url, err)
	}
	return nil
}
