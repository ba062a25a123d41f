package dynamo

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

const (
	// shardsEvery is how often new shards are searched for: a shard that splits
	// continues in new ones.
	shardsEvery = 10 * time.Second
	// idlePause is the pause after a read without records: a shard may be read five
	// times a second.
	idlePause = 200 * time.Millisecond
)

// Changes reads the shards of a stream that this process has locked, one after the
// other, from where the last reader stopped. One goroutine may use it.
type Changes struct {
	stream *Stream
	leases *ShardLocks
	log    *slog.Logger
	shards map[string]*shardReader
	looked time.Time
	logged *bool // whether the last line about the locks says that this process has some, or nil
}

// shardReader is the state of reading a shard.
type shardReader struct {
	parent, iterator, next string
	last                   string // the sequence number of the last processed record
	reached                string // the sequence number of the last record read
	read                   bool   // since the last call of Done
	ended                  bool
	sick                   bool      // the last read failed
	until                  time.Time // the end of the lock
}

// NewChanges returns the changes of a stream. It logs shards that cannot be read while
// others can.
func NewChanges(s *Stream, l *ShardLocks, log *slog.Logger) *Changes {
	return &Changes{stream: s, leases: l, log: log, shards: map[string]*shardReader{}}
}

// Next waits a moment for changes, and returns all that it finds, those of an item in
// their order. It returns them again unless Done is called.
func (c *Changes) Next(ctx context.Context) (records []table.Record, err error) {
	if time.Since(c.looked) >= shardsEvery {
		if err := c.look(ctx); err != nil {
			return nil, err
		}
	}
	open, holds := 0, false
	for id, sh := range c.shards {
		sh.read = false // without Done, records read before were not processed
		if sh.ended || c.behind(sh.parent) {
			continue
		}
		held, failed := c.hold(ctx, id, sh)
		open, holds = open+1, holds || held
		if failed == nil && held {
			var found []table.Record
			found, failed = c.read(ctx, id, sh)
			records = append(records, found...)
		}
		err = cmp.Or(err, failed) // a failing shard does not delay the others
		if held || failed != nil {
			c.note(ctx, id, sh, failed)
		}
	}
	if err == nil && open > 0 && (c.logged == nil || *c.logged != holds) {
		c.logHolds(holds)
	}
	if len(records) == 0 && err != nil {
		return nil, err
	}
	if len(records) == 0 {
		if err := c.Done(ctx); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(idlePause):
		}
	}
	return records, nil
}

// logHolds logs that this process reads shards from now on, or none.
func (c *Changes) logHolds(holds bool) {
	c.logged = &holds
	if holds {
		c.log.Info("reading changes of the table", "use", c.leases.use)
		return
	}
	c.log.Info("standing by while another control plane reads the changes of the table", "use", c.leases.use)
}

// note logs once that a shard cannot be read, and once that it can be read again.
func (c *Changes) note(ctx context.Context, id string, sh *shardReader, err error) {
	switch {
	case ctx.Err() != nil || sh.sick == (err != nil):
		return
	case err != nil:
		c.log.Error("failed to read stream shard, retrying", "shard", id, "error", err)
	default:
		c.log.Info("reading stream shard again", "shard", id)
	}
	sh.sick = err != nil
}

// hold takes or renews the lock of a shard when it is due, and reports whether this
// process has it. With a new lock the reading continues where the previous owner
// stopped.
func (c *Changes) hold(ctx context.Context, id string, sh *shardReader) (held bool, err error) {
	now := time.Now()
	if sh.until.Sub(now) > leaseRenewal {
		return true, nil
	}
	fresh := !now.Before(sh.until)
	until, after, err := c.leases.Take(ctx, id)
	if err != nil {
		return false, err
	}
	sh.until = until
	if until.IsZero() {
		sh.iterator = "" // another process continues from here
		return false, nil
	}
	if fresh {
		sh.last, sh.iterator = after, ""
	}
	return true, nil
}

// Release releases the locks of all shards.
func (c *Changes) Release(ctx context.Context) error {
	for id, sh := range c.shards {
		if sh.until.IsZero() {
			continue
		}
		if err := c.leases.Release(ctx, id); err != nil {
			return err
		}
		sh.until = time.Time{}
	}
	return nil
}

// look updates the list of shards.
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

// behind reports whether a shard is not yet read to its end: its children wait for
// that.
func (c *Changes) behind(id string) bool {
	sh := c.shards[id]
	return sh != nil && !sh.ended
}

// read reads the next records of a shard.
func (c *Changes) read(ctx context.Context, id string, sh *shardReader) (records []table.Record, err error) {
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
	}
	return records, nil
}

// Done records that the changes returned by Next were processed.
func (c *Changes) Done(ctx context.Context) error {
	for id, sh := range c.shards {
		if !sh.read {
			continue
		}
		if sh.reached != sh.last {
			if err := c.leases.Note(ctx, id, sh.reached); err != nil {
				return err
			}
		}
		sh.last, sh.iterator, sh.read = sh.reached, sh.next, false
		sh.ended = sh.next == ""
	}
	return nil
}
