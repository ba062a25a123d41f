package dynamo

import (
	"context"
	"time"

	"github.com/limitgate/limitgate/table"
)

const (
	// shardsEvery is how often new shards are looked for: those that split off have the
	// changes that follow.
	shardsEvery = 10 * time.Second
	// idlePause is how long nothing is asked after nothing was found: a shard may be read
	// five times a second.
	idlePause = 200 * time.Millisecond
)

// Changes reads all shards of a stream, one after the other, from what it still has on.
// One goroutine may use it.
type Changes struct {
	stream *Stream
	shards map[string]*shardReader
	looked time.Time
	// Lost is called with the key of an item that was deleted without a tombstone or
	// written without its next version, or of what is none.
	Lost func(key string)
}

// shardReader is where the reading of a shard stands.
type shardReader struct {
	parent, iterator, next string
	last                   string // the latest sequence number that was told
	reached                string // the latest that was read
	read                   bool   // since Done was called
	ended                  bool
}

// NewChanges returns the changes of a stream.
func NewChanges(s *Stream) *Changes {
	return &Changes{stream: s, shards: map[string]*shardReader{}, Lost: func(string) {}}
}

// Next waits a moment for changes, and returns those that there are. They are told again
// unless Done is called.
func (c *Changes) Next(ctx context.Context) (items []table.Item, err error) {
	if time.Since(c.looked) >= shardsEvery {
		if err := c.look(ctx); err != nil {
			return nil, err
		}
	}
	for id, sh := range c.shards {
		if sh.ended || c.behind(sh.parent) {
			continue
		}
		found, err := c.read(ctx, id, sh)
		if err != nil {
			return nil, err
		}
		items = append(items, found...)
	}
	if len(items) == 0 {
		if err := c.Done(ctx); err != nil { // what was read held nothing to tell
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(idlePause):
		}
	}
	return items, nil
}

// look finds the shards that there are.
func (c *Changes) look(ctx context.Context) error {
	shards, err := c.stream.Shards(ctx)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, sh := range shards {
		there[sh.ID] = true
		if c.shards[sh.ID] == nil {
			c.shards[sh.ID] = &shardReader{parent: sh.Parent}
		}
	}
	for id := range c.shards {
		if !there[id] {
			delete(c.shards, id)
		}
	}
	c.looked = time.Now()
	return nil
}

// behind reports whether a shard is still to be read: its children wait for that.
func (c *Changes) behind(id string) bool {
	sh := c.shards[id]
	return sh != nil && !sh.ended
}

// read reads the next records of a shard.
func (c *Changes) read(ctx context.Context, id string, sh *shardReader) (items []table.Item, err error) {
	if sh.iterator == "" {
		if sh.iterator, err = c.stream.Start(ctx, id, sh.last); err != nil {
			return nil, err
		}
	}
	records, next, err := c.stream.Read(ctx, sh.iterator)
	if err != nil {
		sh.iterator = "" // it may have expired
		return nil, err
	}
	sh.next, sh.reached, sh.read = next, sh.last, true
	for _, r := range records {
		sh.reached = r.Sequence
		switch {
		case r.After != nil && r.After.Version > versionOf(r.Before) && table.IsKey(r.After.Key):
			items = append(items, *r.After)
		case r.After != nil:
			c.Lost(r.After.Key)
		case r.Before != nil && !r.Before.Deleted: // tombstones go when their time is up
			c.Lost(r.Before.Key)
		}
	}
	return items, nil
}

// versionOf returns an item's version, 0 where there is none.
func versionOf(it *table.Item) int64 {
	if it == nil {
		return 0
	}
	return it.Version
}

// Done notes that what Next returned was told.
func (c *Changes) Done(context.Context) error {
	for _, sh := range c.shards {
		if !sh.read {
			continue
		}
		sh.last, sh.iterator, sh.read = sh.reached, sh.next, false
		sh.ended = sh.next == ""
	}
	return nil
}
