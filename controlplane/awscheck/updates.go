package awscheck

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
)

func (c *checker) subscribe(ctx context.Context) (string, error) {
	if err := needs(c.Topic != "", "--topic"); err != nil {
		return "", err
	}
	queue, err := dynamo.Subscribe(ctx, c.AWS, c.Topic)
	if err != nil {
		return "", err
	}
	c.queue = queue
	_, _, err = queue.Receive(ctx)
	return "", err
}

// change deletes the probe, and waits for the message about that.
func (c *checker) change(ctx context.Context) (string, error) {
	if err := cmp.Or(needs(c.queue != nil, "a queue"), needs(c.probe.Version > 0, "a tenant that was written")); err != nil {
		return "", err
	}
	began := time.Now()
	deleted, err := c.limits.Put(ctx, table.Item{Key: c.probe.Key, Version: c.probe.Version, Actor: probeActor, At: began.UTC(), Deleted: true})
	if err != nil {
		return "", err
	}
	_, err = c.await(ctx, func(m *table.Message) bool {
		return m.Item != nil && m.Item.Key == deleted.Key && m.Item.Version == deleted.Version
	})
	if err != nil {
		return "", fmt.Errorf("does a control plane run? %w", err)
	}
	return fmt.Sprintf("%s after the write", time.Since(began).Round(time.Millisecond)), nil
}

// digest waits for a digest, and compares it with a scan of the table.
func (c *checker) digest(ctx context.Context) (string, error) {
	if err := needs(c.queue != nil, "a queue"); err != nil {
		return "", err
	}
	for {
		m, err := c.await(ctx, func(m *table.Message) bool { return m.Digest != nil })
		if err != nil {
			return "", fmt.Errorf("does a control plane run? %w", err)
		}
		items, err := c.limits.Scan(ctx)
		if err != nil {
			return "", err
		}
		if controlplane.DigestOf(items) == *m.Digest { // otherwise an item may have just changed
			return fmt.Sprintf("%d items, every %d s", m.Digest.Count, m.Every), nil
		}
	}
}

// await receives messages until kind returns true for one.
func (c *checker) await(ctx context.Context, kind func(*table.Message) bool) (*table.Message, error) {
	for {
		messages, _, err := c.queue.Receive(ctx)
		if err != nil {
			return nil, err
		}
		for i := range messages {
			if kind(&messages[i]) {
				return &messages[i], nil
			}
		}
	}
}

func (c *checker) unsubscribe(ctx context.Context) (string, error) {
	if err := needs(c.queue != nil, "a queue"); err != nil {
		return "", err
	}
	return "", c.queue.Close(ctx)
}
