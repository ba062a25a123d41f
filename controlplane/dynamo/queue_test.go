package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awstest"
)

// subscribe creates a queue that is closed with the test, unless it is before.
func subscribe(t *testing.T, a *awstest.AWS, topic string) *Queue {
	t.Helper()
	q, err := Subscribe(t.Context(), a.Config, topic)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// messages returns Receive with the number of bad messages added to bad.
func messages(q *Queue, bad *int) func(context.Context) ([]table.Message, error) {
	return func(ctx context.Context) ([]table.Message, error) {
		got, n, err := q.Receive(ctx)
		*bad += n
		return got, err
	}
}

// TestEveryQueueGetsEveryMessage: of 25 messages, which are published in three calls,
// each queue gets each once, unchanged. A closed queue is gone with its subscription,
// and the others stay.
func TestEveryQueueGetsEveryMessage(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	arn := a.Topic(t, "limits")
	queues := []*Queue{subscribe(t, a, arn), subscribe(t, a, arn)}
	var sent []table.Message
	for i := range 25 {
		it := item(fmt.Sprintf("TENANT#%d", i), int64(i+1), `{"plan":"ä"}`)
		sent = append(sent, table.Message{Item: &it, At: it.At.Add(time.Second)})
	}
	sent[24] = table.Message{Digest: &table.Digest{Count: 24, Sum: 1<<64 - 1}, At: sent[0].At}
	if _, err := NewTopic(a.Config, arn).Publish(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		bad := 0
		got := collect(t, "25 messages", messages(q, &bad), atLeast[table.Message](25))
		byKey := map[string]table.Message{}
		for _, m := range got {
			byKey[keyOf(m)] = m
		}
		if len(got) != 25 || bad != 0 {
			t.Errorf("%d messages, %d bad", len(got), bad)
		}
		for _, m := range sent {
			if !reflect.DeepEqual(byKey[keyOf(m)], m) {
				t.Errorf("%s was received as %+v", keyOf(m), byKey[keyOf(m)])
			}
		}
		if n := waiting(t, a, q.url); n != "0 0" {
			t.Errorf("what was received is kept: %s", n)
		}
	}
	for left := 1; left >= 0; left-- {
		if err := queues[left].Close(t.Context()); err != nil {
			t.Error(err)
		}
		if q, s := a.Queues(t), a.Subscriptions(t); len(q) != left || len(s) != left {
			t.Errorf("%d queues are closed, there are %v with %v", 2-left, q, s)
		}
	}
}

func keyOf(m table.Message) string {
	if m.Item == nil {
		return "digest"
	}
	return m.Item.Key
}

// waiting returns how many messages a queue has, and how many that were received but
// not deleted.
func waiting(t *testing.T, a *awstest.AWS, url string) string {
	t.Helper()
	got, err := sqs.NewFromConfig(a.Config).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	return got.Attributes["ApproximateNumberOfMessages"] + " " + got.Attributes["ApproximateNumberOfMessagesNotVisible"]
}

// TestQueueIsMadeForOneTopic checks its name, its policy and its retention.
func TestQueueIsMadeForOneTopic(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	arn := a.Topic(t, "limits")
	q := subscribe(t, a, arn)
	if !strings.Contains(q.url, "/"+queuePrefix) {
		t.Errorf("its URL is %s", q.url)
	}
	got, err := sqs.NewFromConfig(a.Config).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Statement []struct {
			Effect, Action, Resource string
			Principal                map[string]string
			Condition                map[string]map[string]string
		}
	}
	if err := json.Unmarshal([]byte(got.Attributes["Policy"]), &policy); err != nil || len(policy.Statement) != 1 {
		t.Fatalf("its policy is %s: %v", got.Attributes["Policy"], err)
	}
	if s := policy.Statement[0]; s.Effect != "Allow" || s.Action != "sqs:SendMessage" || s.Resource != got.Attributes["QueueArn"] ||
		s.Principal["Service"] != "sns.amazonaws.com" || s.Condition["ArnEquals"]["aws:SourceArn"] != arn {
		t.Errorf("its policy is %+v", s)
	}
	if keeps := got.Attributes["MessageRetentionPeriod"]; keeps != "3600" {
		t.Errorf("it keeps messages for %s s", keeps)
	}
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestGarbageIsCounted: an invalid message is deleted and counted, and valid ones
// beside it are received.
func TestGarbageIsCounted(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	arn := a.Topic(t, "limits")
	q := subscribe(t, a, arn)
	garbage := []string{"no JSON", `{"item":7}`, `[]`, `{"item":{"version":"x"}}`}
	for _, text := range garbage {
		if _, err := sns.NewFromConfig(a.Config).Publish(t.Context(), &sns.PublishInput{TopicArn: &arn, Message: aws.String(text)}); err != nil {
			t.Fatal(err)
		}
	}
	it := item("SHARED", 1, `{}`)
	if _, err := NewTopic(a.Config, arn).Publish(t.Context(), []table.Message{{Item: &it}}); err != nil {
		t.Fatal(err)
	}
	bad := 0
	got := collect(t, "a message and garbage", messages(q, &bad), func(all []table.Message) bool { return len(all)+bad >= 5 })
	if len(got) != 1 || bad != len(garbage) || keyOf(got[0]) != "SHARED" {
		t.Errorf("%d bad, and %+v", bad, got)
	}
	if n := waiting(t, a, q.url); n != "0 0" {
		t.Errorf("garbage is kept: %s", n)
	}
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSubscribeToNothing: without its topic a queue is deleted.
func TestSubscribeToNothing(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	arn := strings.Replace(a.Topic(t, "limits"), ":limits", ":other", 1)
	missing := ": there is no topic " + arn + ": check its ARN"
	if q, err := Subscribe(t.Context(), a.Config, arn); err == nil || err.Error() != "subscribe queue"+missing {
		t.Errorf("subscribed to a topic that is not there: %+v, %v", q, err)
	}
	if left := a.Queues(t); len(left) != 0 {
		t.Errorf("queues that nobody knows: %v", left)
	}
	if err := NewTopic(a.Config, arn).Check(t.Context()); err == nil || ": "+err.Error() != missing {
		t.Errorf("a topic that is not there: %v", err)
	}
	if err := NewTopic(a.Config, a.Topic(t, "limits")).Check(t.Context()); err != nil {
		t.Errorf("a topic that is there: %v", err)
	}
	it := item("SHARED", 1, `{}`)
	if _, err := NewTopic(a.Config, arn).Publish(t.Context(), []table.Message{{Item: &it}}); err == nil || err.Error() != "publish updates"+missing {
		t.Errorf("published to a topic that is not there: %v", err)
	}
}

// TestReceiveEnds: Receive ends with its context, in the middle of the long wait.
func TestReceiveEnds(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	q := subscribe(t, a, a.Topic(t, "limits"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, _, err := q.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
	if took := time.Since(begun); took > receiveWait*time.Second/2 {
		t.Errorf("it took %s", took)
	}
	if err := q.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSubscriptionStartsLater: a subscription works when AWS is unavailable at first,
// and closes only the queue that it created.
func TestSubscriptionStartsLater(t *testing.T) {
	t.Parallel()
	a := awstest.Start(t)
	arn := a.Topic(t, "limits")
	if err := a.Kill(); err != nil {
		t.Fatal(err)
	}
	s := NewSubscription(a.Config, arn)
	if err := s.Open(t.Context()); err == nil {
		t.Error("opened without AWS")
	}
	if _, _, err := s.Receive(t.Context()); err == nil {
		t.Error("received without AWS")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closed without a queue: %v", err)
	}
	if err := a.Restart(); err != nil {
		t.Fatal(err)
	}
	if again := a.Topic(t, "limits"); again != arn {
		t.Fatalf("the topic is %s now", again)
	}
	receivesAnew(t, a, s, arn)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := a.Queues(t); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// receivesAnew checks that a subscription returns ErrMissed, and then receives new
// messages.
func receivesAnew(t *testing.T, a *awstest.AWS, s *Subscription, topic string) {
	t.Helper()
	if got, bad, err := s.Receive(t.Context()); len(got) != 0 || bad != 0 || !errors.Is(err, table.ErrMissed) {
		t.Fatalf("received %v, %d, %v from a queue that is new", got, bad, err)
	}
	it := item("SHARED", 1, `{}`)
	if _, err := NewTopic(a.Config, topic).Publish(t.Context(), []table.Message{{Item: &it}}); err != nil {
		t.Fatal(err)
	}
	if got, bad, err := s.Receive(t.Context()); len(got) != 1 || bad != 0 || err != nil {
		t.Errorf("received %v, %d, %v", got, bad, err)
	}
}

// TestDeletedQueue: another queue is created.
func TestDeletedQueue(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	arn := a.Topic(t, "limits")
	s := NewSubscription(a.Config, arn)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := sqs.NewFromConfig(a.Config).DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &s.queue.url}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Receive(t.Context()); err == nil || errors.Is(err, table.ErrMissed) {
		t.Errorf("received from a queue that is gone: %v", err)
	}
	receivesAnew(t, a, s, arn)
	if n := len(a.Subscriptions(t)); n != 1 {
		t.Errorf("%d subscriptions of one queue", n)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOpenQueueIsNotClosed: Close does not delete a queue that was created elsewhere.
func TestOpenQueueIsNotClosed(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	owner := subscribe(t, a, a.Topic(t, "limits"))
	if err := OpenQueue(a.Config, owner.url).Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := a.Queues(t); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
	if err := owner.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRenew: a queue whose subscription was deleted is created anew, with another
// subscription, and the old one is gone.
func TestRenew(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	arn := a.Topic(t, "renewed")
	s := NewSubscription(a.Config, arn)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := s.queue.url
	if _, err := sns.NewFromConfig(a.Config).Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &s.queue.subscription}); err != nil {
		t.Fatal(err)
	}
	s.Renew(t.Context())
	if _, _, err := s.Receive(t.Context()); !errors.Is(err, table.ErrMissed) {
		t.Fatalf("a new queue is there, and %v", err)
	}
	if s.queue.url == before {
		t.Error("the queue is the old one")
	}
	if _, err := NewTopic(a.Config, arn).Publish(t.Context(), []table.Message{{Reread: true}}); err != nil {
		t.Fatal(err)
	}
	if messages, _, err := s.Receive(t.Context()); err != nil || len(messages) != 1 {
		t.Errorf("%d messages arrive, %v", len(messages), err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
