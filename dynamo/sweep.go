package dynamo

import (
	"context"
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
// subscriptions, and returns how many.
func (s *Sweeper) Sweep(ctx context.Context, now time.Time) (swept int, err error) {
	pages := sqs.NewListQueuesPaginator(s.queues, &sqs.ListQueuesInput{QueueNamePrefix: aws.String(queuePrefix), MaxResults: aws.Int32(1000)})
	var orphans []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, fmt.Errorf("list queues: %w", err)
		}
		for _, url := range page.QueueUrls {
			orphan, err := s.isOrphan(ctx, url, now)
			if err != nil {
				return 0, err
			}
			if orphan {
				orphans = append(orphans, url)
			}
		}
	}
	if len(orphans) == 0 {
		return 0, nil
	}
	subscriptions, err := s.subscriptions(ctx)
	if err != nil {
		return 0, err
	}
	for _, url := range orphans {
		if err := s.take(ctx, url, subscriptions); err != nil {
			return swept, err
		}
		swept++
	}
	return swept, nil
}

// isOrphan reports whether a queue is of the topic, and no proxy was there for a while.
func (s *Sweeper) isOrphan(ctx context.Context, url string, now time.Time) (bool, error) {
	out, err := s.queues.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read tags of %s: %w", url, err)
	}
	alive, err := strconv.ParseInt(out.Tags[tagAlive], 10, 64)
	return err == nil && out.Tags[tagTopic] == s.topic && now.Sub(time.Unix(alive, 0)) >= orphanAfter, nil
}

// subscriptions returns the subscriptions of the topic by the names of their queues.
func (s *Sweeper) subscriptions(ctx context.Context) (map[string]string, error) {
	byName := map[string]string{}
	pages := sns.NewListSubscriptionsByTopicPaginator(s.topics, &sns.ListSubscriptionsByTopicInput{TopicArn: &s.topic})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list subscriptions: %w", err)
		}
		for _, one := range page.Subscriptions {
			endpoint := aws.ToString(one.Endpoint)
			byName[endpoint[strings.LastIndexByte(endpoint, ':')+1:]] = aws.ToString(one.SubscriptionArn)
		}
	}
	return byName, nil
}

// take takes a queue and its subscription away.
func (s *Sweeper) take(ctx context.Context, url string, subscriptions map[string]string) error {
	if arn := subscriptions[url[strings.LastIndexByte(url, '/')+1:]]; arn != "" {
		if _, err := s.topics.Unsubscribe(ctx, &sns.UnsubscribeInput{SubscriptionArn: &arn}); err != nil {
			return fmt.Errorf("sweep %s: %w", url, err)
		}
	}
	_, err := s.queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
	if err != nil && !isGone(err) {
		return fmt.Errorf("sweep %s: %w", url, err)
	}
	return nil
}
