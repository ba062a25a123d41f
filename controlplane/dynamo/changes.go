package dynamo

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

const (
	// shardsEvery is how often new shards are looked for: those that split off have the
	// changes that follow.
	shardsEvery = 10 * time.Second
	// idlePause is how long nothing is asked after nothing was found: a shard may be read
	// five times a second.
	idlePause = 200 * time.Millisecond
)

// Changes reads the shards of a stream that are its own by their leases, one after the
// other, from where they were told. One goroutine may use it.
type Changes struct {
	stream *Stream
	leases *ShardLocks
	log    *slog.Logger
	shards map[string]*shardReader
	looked time.Time
}

// shardReader is where the reading of a shard stands.
type shardReader struct {
	parent, iterator, next string
	last                   string // the latest sequence number that was told
	reached                string // the latest that was read
	read                   bool   // since Done was called
	ended                  bool
	sick                   bool      // it could not be read the last time
	until                  time.Time // the lease ends then
}

// NewChanges returns the changes of a stream. The log tells of shards that cannot be read
// while others can.
func NewChanges(s *Stream, l *ShardLocks, log *slog.Logger) *Changes {
	return &Changes{stream: s, leases: l, log: log, shards: map[string]*shardReader{}}
}

// Next waits a moment for changes, and returns all that there are, those of an item in
// their order. They are told again unless Done is called.
func (c *Changes) Next(ctx context.Context) (records []table.Record, err error) {
	if time.Since(c.looked) >= shardsEvery {
		if err := c.look(ctx); err != nil {
			return nil, err
		}
	}
	for id, sh := range c.shards {
		sh.read = false // what was read before was not told, or Done would have said so
		if sh.ended || c.behind(sh.parent) {
			continue
		}
		held, failed := c.hold(ctx, id, sh)
		if failed == nil && held {
			var found []table.Record
			found, failed = c.read(ctx, id, sh)
			records = append(records, found...)
		}
		err = cmp.Or(err, failed) // one that is sick holds up no other
		if held || failed != nil {
			c.note(ctx, id, sh, failed)
		}
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

// note tells once of a shard that cannot be read, and once that it can be again.
func (c *Changes) note(ctx context.Context, id string, sh *shardReader, err error) {
	switch {
	case ctx.Err() != nil || sh.sick == (err != nil):
		return
	case err != nil:
		c.log.Error("a shard of the stream cannot be read, and will be", "shard", id, "error", err)
	default:
		c.log.Info("a shard of the stream can be read again", "shard", id)
	}
	sh.sick = err != nil
}

// hold takes or prolongs the lease of a shard when it is time, and reports whether it is
// held. Where it is new the reading begins where somebody else was.
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
		sh.iterator = "" // another one goes on from here
		return false, nil
	}
	if fresh {
		sh.last, sh.iterator = after, ""
	}
	return true, nil
}

// Release gives the shards to whoever comes next.
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

// Done notes that what Next returned was told.
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
