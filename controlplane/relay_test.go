package controlplane

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/limitgate/limitgate/controlplane/table"
)

var errDown = errors.New("it is down")

// fakeStream returns changes, and the same ones again until Done.
type fakeStream struct {
	mu       sync.Mutex
	batches  [][]table.Record
	nextErrs int // how often Next fails
	doneErrs int // how often Done fails
	nexts    int
}

func (f *fakeStream) add(items ...table.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var records []table.Record
	for i := range items {
		records = append(records, table.Record{After: &items[i]})
	}
	f.batches = append(f.batches, records)
}

func (f *fakeStream) Next(ctx context.Context) ([]table.Record, error) {
	select {
	case <-time.After(100 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nexts++
	if f.nextErrs > 0 {
		f.nextErrs--
		return nil, errDown
	}
	if len(f.batches) == 0 {
		return nil, nil
	}
	return f.batches[0], nil
}

func (f *fakeStream) Done(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.doneErrs > 0 {
		f.doneErrs--
		return errDown
	}
	f.batches = f.batches[1:]
	return nil
}

func (f *fakeStream) left() (batches, nexts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.batches), f.nexts
}

// fakeTopic stores published messages, unless it fails.
type fakeTopic struct {
	mu    sync.Mutex
	told  []table.Message
	fails int // how often Publish fails
	calls int
}

func (f *fakeTopic) Publish(_ context.Context, messages []table.Message) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.fails > 0 {
		f.fails--
		return 0, errDown
	}
	f.told = append(f.told, messages...)
	return len(messages), nil
}

// got returns the items and the digests that were published.
func (f *fakeTopic) got() (items []table.Item, digests []table.Digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.told {
		if m.Item != nil {
			items = append(items, *m.Item)
		}
		if m.Digest != nil {
			digests = append(digests, *m.Digest)
		}
	}
	return items, digests
}

func (f *fakeTopic) failing(times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = times
}

func item(key string, version int64) table.Item {
	return table.Item{Key: key, Version: version, Actor: "ann", At: time.Unix(1_700_000_000, 0)}
}

func tombstone(key string, version int64) table.Item {
	it := item(key, version)
	it.Deleted = true
	return it
}

// relaying runs a relay in a synctest bubble.
func relaying(t *testing.T, test func(*fakeStream, *fakeTopic)) {
	synctest.Test(t, func(t *testing.T) {
		stream, topic := &fakeStream{}, &fakeTopic{}
		r := &Relay{Stream: stream, Handler: &Handler{Publish: topic, Log: slog.New(slog.DiscardHandler)}, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		test(stream, topic)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func sameItems(a, b []table.Item) bool {
	return slices.EqualFunc(a, b, func(x, y table.Item) bool { return x.Key == y.Key && x.Version == y.Version })
}

// TestRelay: changes are published in their order, and each once if there is no
// failure.
func TestRelay(t *testing.T) {
	relaying(t, func(stream *fakeStream, topic *fakeTopic) {
		want := []table.Item{item("PLAN#a", 1), item("TENANT#a", 1), item("TENANT#a", 2), item("PLAN#a", 2)}
		stream.add(want[:3]...)
		stream.add(want[3])
		begin := time.Now()
		time.Sleep(time.Second)
		items, _ := topic.got()
		if left, _ := stream.left(); !sameItems(items, want) || left != 0 {
			t.Errorf("published %v, %d batches are left", items, left)
		}
		for _, m := range topic.told {
			if m.At.Before(begin) || m.At.After(time.Now()) || m.At.Location() != time.UTC {
				t.Errorf("made at %s", m.At)
			}
		}
	})
}

// TestRelayRetries: changes are published again, in order, if publishing or Done
// failed, with pauses in between.
func TestRelayRetries(t *testing.T) {
	first, second := item("TENANT#a", 1), item("TENANT#a", 2)
	for name, c := range map[string]struct {
		next, publish, done int
		want                []table.Item
	}{
		"next":    {3, 0, 0, []table.Item{first, second}},
		"publish": {0, 3, 0, []table.Item{first, second}},
		"done":    {0, 0, 2, []table.Item{first, first, first, second}},
	} {
		relaying(t, func(stream *fakeStream, topic *fakeTopic) {
			time.Sleep(time.Second)
			stream.mu.Lock()
			stream.nextErrs, stream.doneErrs = c.next, c.done
			stream.mu.Unlock()
			topic.failing(c.publish)
			stream.add(first)
			stream.add(second)
			_, before := stream.left()
			time.Sleep(3 * retryPause)
			if _, after := stream.left(); after-before > 15 {
				t.Errorf("%s: asked %d times", name, after-before)
			}
			time.Sleep(time.Minute)
			if items, _ := topic.got(); !sameItems(items, c.want) {
				t.Errorf("%s: published %v", name, items)
			}
		})
	}
}

// TestRelayEnds: Run ends with its context, while it publishes and while it waits after
// errors.
func TestRelayEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, fails := range []int{0, 1 << 30} {
		synctest.Test(t, func(t *testing.T) {
			stream, topic := &fakeStream{}, &fakeTopic{fails: fails}
			stream.add(item("TENANT#a", 1))
			r := &Relay{Stream: stream, Handler: &Handler{Publish: topic, Log: slog.New(slog.DiscardHandler)}, Log: slog.New(slog.DiscardHandler)}
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			begin := time.Now()
			if err := r.Run(ctx); err != nil || time.Since(begin) != 150*time.Millisecond {
				t.Errorf("%v after %s", err, time.Since(begin))
			}
		})
	}
}
