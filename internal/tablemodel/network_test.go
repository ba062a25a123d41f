package tablemodel

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

const (
	// receiveWait and receiveMost are how long a queue waits for messages, and how many
	// it returns.
	receiveWait = 20 * time.Second
	receiveMost = 10
	// delay bounds the delay of a message, and lateness that of a late one.
	delay    = 300 * time.Millisecond
	lateness = time.Minute
)

// network is a topic, and the queues that are subscribed to it. Any number of
// goroutines may use it.
type network struct {
	mu     sync.Mutex // guards the fields below, and those of the queues
	random *rand.Rand
	faulty float64 // the share of messages that are lost; equal shares are duplicated or late
	down   bool
	queues []*queue
}

// queue is the queue of one proxy.
type queue struct {
	network    *network
	subscribed bool
	gone       bool // the queue was deleted
	deliveries []delivery
}

type delivery struct {
	at   time.Time
	body []byte
}

func (n *network) newQueue() *queue {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := &queue{network: n, subscribed: true}
	n.queues = append(n.queues, q)
	return q
}

// set makes the network faulty, or down.
func (n *network) set(faulty float64, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faulty, n.down = faulty, down
}

// Publish sends messages to all queues that are subscribed.
func (n *network) Publish(_ context.Context, messages []table.Message) (sent int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return 0, errDown
	}
	for i := range messages {
		for _, q := range n.queues {
			if q.subscribed && !q.gone {
				q.send(&messages[i], n.faulty)
			}
		}
	}
	return len(messages), nil
}

// send sends a message to a queue, or loses it. The caller holds the network's mu.
func (q *queue) send(m *table.Message, faulty float64) {
	body, err := json.Marshal(m)
	if err != nil {
		return // an item whose body is not JSON, which the real topic rejects, too
	}
	r := q.network.random
	times := 1
	within := delay
	switch x := r.Float64(); {
	case x < faulty:
		times = 0
	case x < 2*faulty:
		times = 2
	case x < 3*faulty:
		within = lateness
	}
	for range times {
		q.deliveries = append(q.deliveries, delivery{time.Now().Add(time.Duration(r.Int64N(int64(within)))), body})
	}
}

// forge sends a message to a queue, as any writer with access to it can.
func (q *queue) forge(m *table.Message) {
	q.network.mu.Lock()
	defer q.network.mu.Unlock()
	q.send(m, 0)
}

// Receive waits for messages.
func (q *queue) Receive(ctx context.Context) (messages []table.Message, bad int, err error) {
	for end := time.Now().Add(receiveWait); time.Now().Before(end); {
		messages, bad, err = q.receive()
		if len(messages)+bad > 0 || err != nil {
			return messages, bad, err
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
	return nil, 0, nil
}

func (q *queue) receive() (messages []table.Message, bad int, err error) {
	q.network.mu.Lock()
	defer q.network.mu.Unlock()
	switch {
	case q.network.down:
		return nil, 0, errDown
	case q.gone: // the next call creates it
		q.gone, q.subscribed = false, true
		return nil, 0, table.ErrMissed
	}
	now := time.Now()
	q.deliveries = slices.DeleteFunc(q.deliveries, func(d delivery) bool {
		if d.at.After(now) || len(messages)+bad == receiveMost {
			return false
		}
		var m table.Message
		if json.Unmarshal(d.body, &m) != nil {
			bad++
		} else {
			messages = append(messages, m)
		}
		return true
	})
	return messages, bad, nil
}

// Renew creates the queue and its subscription anew.
func (q *queue) Renew(context.Context) { q.lose(true) }

// lose deletes the queue, or its subscription alone.
func (q *queue) lose(all bool) {
	q.network.mu.Lock()
	defer q.network.mu.Unlock()
	if q.subscribed = false; all {
		q.gone, q.deliveries = true, nil
	}
}
