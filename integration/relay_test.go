package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	relayQueue = "relay"
	relayBatch = 10 // maximum of an SQS batch
	relayMost  = 20 // batches that are sent together
	// relayPause lets messages accumulate: an emulator is too slow for single ones.
	relayPause = 50 * time.Millisecond
	// relayLate is the smallest delay of a delayed message, and half of the largest: by
	// then the item has another version.
	relayLate = 2 * time.Second
)

// relay stands between the topic and the queues of proxies. It forwards the topic's
// messages to each queue, and loses, duplicates and delays a share of them if disturb has
// set one.
type relay struct {
	queues *sqs.Client
	topics *sns.Client
	topic  string
	own    string // the URL of the queue that it reads

	mu      sync.Mutex // guards the fields below
	outlets []*outlet
	share   float64 // of the messages that are lost, of those that are duplicated, and of those that are delayed
	lost    int
	doubled int
	late    int
}

// outlet is the queue of one proxy. Only the relay's goroutine uses the fields other than
// the URL.
type outlet struct {
	name, url string
	random    *rand.Rand
	held      []held // messages to be sent after later ones
}

// held is a delayed message.
type held struct {
	body string
	due  time.Time
}

// startRelay starts a relay that is subscribed to the topic of a site.
func startRelay(s *site) *relay {
	s.tb.Helper()
	r := &relay{queues: sqs.NewFromConfig(s.Config), topics: sns.NewFromConfig(s.Config), topic: s.topic}
	r.furnish(s.tb)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.run(ctx) })
	s.tb.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return r
}

// furnish creates the queues, also after they were lost with their emulator. Their URLs
// stay the same.
func (r *relay) furnish(tb testing.TB) {
	tb.Helper()
	r.own = r.create(tb, relayQueue)
	got, err := r.queues.GetQueueAttributes(tb.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &r.own, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err == nil {
		_, err = r.topics.Subscribe(tb.Context(), &sns.SubscribeInput{
			TopicArn: &r.topic, Protocol: aws.String("sqs"), Endpoint: aws.String(got.Attributes["QueueArn"]),
			Attributes: map[string]string{"RawMessageDelivery": "true"},
		})
	}
	if err != nil {
		tb.Fatal(err)
	}
	for _, o := range r.all() {
		r.create(tb, o.name)
	}
}

func (r *relay) create(tb testing.TB, name string) (url string) {
	tb.Helper()
	made, err := r.queues.CreateQueue(tb.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		tb.Fatal(err)
	}
	return *made.QueueUrl
}

// add creates the queue of one more proxy, and returns its URL.
func (r *relay) add(tb testing.TB) string {
	tb.Helper()
	n := len(r.all())
	o := &outlet{name: fmt.Sprint("proxy", n), random: rand.New(rand.NewPCG(1, uint64(n)))}
	o.url = r.create(tb, o.name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outlets = append(r.outlets, o)
	return o.url
}

func (r *relay) all() []*outlet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outlets[:len(r.outlets):len(r.outlets)]
}

// disturb sets the share of the messages that are lost, as well as duplicated, and
// delayed.
func (r *relay) disturb(share float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.share = share
}

// run forwards messages until ctx ends. While AWS is away it retries.
func (r *relay) run(ctx context.Context) {
	for ctx.Err() == nil {
		var bodies []string
		for wait := int32(1); len(bodies) < relayMost*relayBatch; wait = 0 {
			got, err := r.receive(ctx, wait)
			bodies = append(bodies, got...)
			if err != nil || len(got) < relayBatch {
				break
			}
		}
		var wg sync.WaitGroup
		for _, o := range r.all() {
			wg.Go(func() { _ = r.send(ctx, o.url, r.choose(o, bodies)) }) // failures are lost messages
		}
		wg.Wait()
		select {
		case <-ctx.Done():
		case <-time.After(relayPause):
		}
	}
}

// receive takes messages from the relay's own queue.
func (r *relay) receive(ctx context.Context, wait int32) (bodies []string, err error) {
	got, err := r.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &r.own, MaxNumberOfMessages: relayBatch, WaitTimeSeconds: wait})
	if err != nil || len(got.Messages) == 0 {
		return nil, err
	}
	forget := make([]types.DeleteMessageBatchRequestEntry, len(got.Messages))
	for i, m := range got.Messages {
		bodies = append(bodies, *m.Body)
		forget[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
	}
	_, err = r.queues.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &r.own, Entries: forget})
	return bodies, err
}

// choose returns the messages to send now: some of the new ones, and those whose delay is
// over.
func (r *relay) choose(o *outlet, bodies []string) (now []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range bodies {
		switch x := o.random.Float64(); {
		case x < r.share:
			r.lost++
		case x < 2*r.share:
			r.doubled++
			now = append(now, body, body)
		case x < 3*r.share:
			r.late++
			late := relayLate + time.Duration(o.random.Int64N(int64(relayLate)))
			o.held = append(o.held, held{body, time.Now().Add(late)})
		default:
			now = append(now, body)
		}
	}
	o.held = slices.DeleteFunc(o.held, func(h held) bool {
		due := !h.due.After(time.Now())
		if due {
			now = append(now, h.body)
		}
		return due
	})
	return now
}

// send sends messages to a queue.
func (r *relay) send(ctx context.Context, url string, bodies []string) error {
	for len(bodies) > 0 {
		n := min(len(bodies), relayBatch)
		entries := make([]types.SendMessageBatchRequestEntry, n)
		for i := range entries {
			entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: &bodies[i]}
		}
		if _, err := r.queues.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries}); err != nil {
			return err
		}
		bodies = bodies[n:]
	}
	return nil
}

// done summarizes the lost, duplicated and delayed messages.
func (r *relay) done() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d lost, %d doubled, %d late", r.lost, r.doubled, r.late)
}
