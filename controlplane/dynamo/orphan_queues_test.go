package dynamo

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/limitgate/limitgate/internal/awstest"
)

// TestSweep: a queue that no proxy has used for an hour is deleted with its
// subscription. Others, and those of other topics and of other programs, stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	topic, other := a.Topic(t, "limits"), a.Topic(t, "others")
	dead, err := Subscribe(t.Context(), a.Config, topic)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Subscribe(t.Context(), a.Config, other); err != nil {
		t.Fatal(err)
	}
	foreign := map[string]string{"limitgate-updates-foreign": "", "somebody": topic}
	for name, of := range foreign {
		in := &sqs.CreateQueueInput{QueueName: aws.String(name)}
		if of != "" {
			in.Tags = map[string]string{tagTopic: of, tagAlive: "0"}
		}
		if _, err := sqs.NewFromConfig(a.Config).CreateQueue(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	s, now := NewSweeper(a.Config, topic), time.Now()
	if n, err := s.Sweep(t.Context(), now.Add(orphanAfter-time.Minute)); n != 0 || err != nil {
		t.Errorf("before its time: %d, %v", n, err)
	}
	lives, err := Subscribe(t.Context(), a.Config, topic)
	if err != nil {
		t.Fatal(err)
	}
	later := now.Add(orphanAfter + time.Minute)
	tags := map[string]string{tagAlive: aliveAt(later)}
	if _, err := sqs.NewFromConfig(a.Config).TagQueue(t.Context(), &sqs.TagQueueInput{QueueUrl: &lives.url, Tags: tags}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(t.Context(), later); n != 1 || err != nil {
		t.Errorf("one orphan: %d, %v", n, err)
	}
	if left := a.Queues(t); len(left) != 4 {
		t.Errorf("left are %v", left)
	}
	if left := a.Subscriptions(t); len(left) != 2 {
		t.Errorf("subscribed are %v", left)
	}
	if _, _, err := dead.Receive(t.Context()); !isGone(err) {
		t.Errorf("the dead one's queue: %v", err)
	}
}
