package tablemodel

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

var (
	errDown     = errors.New("AWS does not answer")
	errConflict = errors.New("somebody was faster")
)

// shards is how many shards the stream of a table has.
const shards = 2

// model is a table with its stream, in memory. Any number of goroutines may use it.
type model struct {
	mu      sync.Mutex // guards the fields below
	items   map[string]table.Item
	stream  [shards][]table.Record // since the table was created
	made    int                    // how often it was created
	backups []map[string]table.Item
	down    bool
	scans   int
	slow    time.Duration // how long after a reading its result is returned
	flaky   bool          // every second reading fails
}

func newModel(items ...table.Item) *model {
	m := &model{items: map[string]table.Item{}}
	for i := range items {
		m.write(items[i].Key, &items[i])
	}
	return m
}

// write puts an item in place of another one, nil for none, without conditions, as
// DynamoDB does.
func (m *model) write(key string, after *table.Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writeLocked(key, after)
}

func (m *model) writeLocked(key string, after *table.Item) {
	r := table.Record{After: after}
	if it, ok := m.items[key]; ok {
		r.Before = &it
	}
	if r.Before == nil && after == nil {
		return
	}
	if delete(m.items, key); after != nil {
		m.items[key] = *after
	}
	s := shardOf(key)
	r.Sequence = strconv.Itoa(len(m.stream[s]))
	m.stream[s] = append(m.stream[s], r)
}

func shardOf(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum32() % shards)
}

// Scan reads all items.
func (m *model) Scan(ctx context.Context) ([]table.Item, error) {
	m.mu.Lock()
	m.scans++
	down, slow := m.down || m.flaky && m.scans%2 == 0, m.slow
	items := slices.Collect(maps.Values(m.items))
	m.mu.Unlock()
	if slow > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(slow):
		}
	}
	if down {
		return nil, errDown
	}
	return items, nil
}

// Get reads an item.
func (m *model) Get(_ context.Context, key string) (it table.Item, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return it, false, errDown
	}
	it, ok = m.items[key]
	return it, ok, nil
}

// Put writes the next version of an item that was read.
func (m *model) Put(ctx context.Context, it table.Item) (table.Item, error) {
	if it.Version >= table.MaxVersion {
		return it, errors.New("there is no next version")
	}
	was := it
	it.Version++
	return it, m.Replace(ctx, it, &was)
}

// Replace writes an item in place of one that was read, nil for none.
func (m *model) Replace(_ context.Context, it table.Item, was *table.Item) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return errDown
	}
	version := int64(0)
	if was != nil {
		version = was.Version
	}
	if m.items[it.Key].Version != version {
		return errConflict
	}
	m.writeLocked(it.Key, &it)
	return nil
}

// pushItem writes the next version of an item, as limits push does; without a body a
// tombstone.
func (m *model) pushItem(key, body string) {
	it, _, _ := m.Get(context.Background(), key)
	_, _ = m.Put(context.Background(), versioned(key, it.Version, body))
}

// versioned returns an item as limits push writes it now.
func versioned(key string, version int64, body string) table.Item {
	it := table.Item{Key: key, Version: version, Actor: "ann", At: time.Now().UTC(), Deleted: body == ""}
	if body != "" {
		it.Body = []byte(body)
	}
	return it
}

// replace deletes the table and creates it again, with a stream of its own.
func (m *model) replace(items map[string]table.Item) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.items, m.stream = map[string]table.Item{}, [shards][]table.Record{}
	m.made++
	for key, it := range items {
		m.items[key] = it // a restore leaves no records
	}
}

// backup adds a copy of all items to the backups.
func (m *model) backup() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.backups = append(m.backups, maps.Clone(m.items))
}

// copied returns one of the backups, or nothing.
func (m *model) copied(n int) map[string]table.Item {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.backups) == 0 {
		return nil
	}
	return m.backups[n%len(m.backups)]
}

func (m *model) fail(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// setReadings sets how long a reading takes, and whether every second one fails.
func (m *model) setReadings(slow time.Duration, flaky bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slow, m.flaky = slow, flaky
}

func (m *model) slowness() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slow
}

func (m *model) all() map[string]table.Item {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.items)
}

func (m *model) scanned() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.scans
}

// records returns the records of a shard from an index on, and the number of the table.
func (m *model) records(shard, from, made int) (records []table.Record, of int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, made, errDown
	}
	if made != m.made {
		from = 0
	}
	return slices.Clone(m.stream[shard][min(from, len(m.stream[shard])):]), m.made, nil
}
