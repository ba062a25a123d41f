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
	// tagAlive is the tag with the time at which a proxy last used its queue, in
	// seconds since the epoch, and aliveEvery is how often it is set.
	tagAlive   = "alive"
	aliveEvery = 10 * time.Minute
	// orphanAfter is the age of that tag from which a queue is an orphan: a proxy that
	// cannot tag its queue for so long, but runs, creates another one.
	orphanAfter = time.Hour
	// SweepEvery is how often to call Sweep.
	SweepEvery = 10 * time.Minute
)

// Sweeper deletes the queues of proxies that died. Any number of goroutines may use it.
type Sweeper struct {
	queues *sqs.Client
	topics *sns.Client
	topic  string
}

// NewSweeper returns the sweeper of the queues of a topic.
func NewSweeper(config aws.Config, topic string) *Sweeper {
	return &Sweeper{sqs.NewFromConfig(config), sns.NewFromConfig(config), topic}
}

// Sweep deletes the queues of the topic that no proxy has used for an hour, with their
// subscriptions, and subscriptions of deleted queues. It returns how many.
func (s *Sweeper) Sweep(ctx context.Context, now time.Time) (swept int, err error) {
	var errs []error
	pages := sns.NewListSubscriptionsByTopicPaginator(s.topics, &sns.ListSubscriptionsByTopicInput{TopicArn: &s.topic})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return swept, fmt.Errorf("list subscriptions: %w", ofTopic(s.topic, s.topics.Options().Region, err))
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
			errs = append(errs, err) // a queue that cannot be read does not stop the sweep
		}
	}
	return swept, errors.Join(errs...)
}

// queueName returns the name of the queue with an ARN.
func queueName(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }

// isOrphan reports whether no proxy has used a queue for orphanAfter, and returns its
// URL, empty if the queue does not exist.
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

// take deletes a subscription, and its queue if that exists.
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
