package dynamo

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awstest"
)

// TestShardLocks: one process has a shard at a time, until it is released or the lock
// expires. The next one continues after the stored sequence number. Each use has locks
// of its own.
func TestShardLocks(t *testing.T) {
	t.Parallel()
	a := awstest.ShareAtomic(t)
	if err := NewTable(a.Config, "leases").Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine, theirs, other := NewShardLocks(a.Config, "leases", "relay"), NewShardLocks(a.Config, "leases", "relay"), NewShardLocks(a.Config, "leases", "audit")
	ahead := time.Duration(0)
	theirs.now = func() time.Time { return time.Now().Add(ahead) }
	take := func(l *ShardLocks, wantHeld bool, wantAfter string) {
		t.Helper()
		until, after, err := l.Take(t.Context(), "shard")
		if err != nil || until.IsZero() == wantHeld || after != wantAfter {
			t.Errorf("held until %s after %q, %v; want held = %v after %q", until, after, err, wantHeld, wantAfter)
		}
	}
	note := func(l *ShardLocks, sequence string) {
		t.Helper()
		if err := l.Note(t.Context(), "shard", sequence); err != nil {
			t.Error(err)
		}
	}
	take(mine, true, "")
	take(theirs, false, "")
	take(other, true, "")
	note(mine, "17")
	note(theirs, "99") // of a lock of others
	take(mine, true, "17")
	ahead = leaseTime + time.Second
	take(theirs, true, "17")
	take(mine, false, "")
	note(mine, "18")
	note(theirs, "20")
	if err := errors.Join(mine.Release(t.Context(), "shard"), theirs.Release(t.Context(), "shard")); err != nil {
		t.Error(err)
	}
	take(mine, true, "20")
	take(other, true, "")
}

// TestReleaseWithoutTable: a lock in a table that does not exist is released.
func TestReleaseWithoutTable(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	if err := NewShardLocks(a.Config, "no-leases", "relay").Release(t.Context(), "shard"); err != nil {
		t.Error(err)
	}
}

// TestShardLocksAtOnce: of many processes that take a shard at the same time one gets
// it. When that one dies the others wait until the lock expires, and then one of them
// gets it.
func TestShardLocksAtOnce(t *testing.T) {
	t.Parallel()
	a := awstest.ShareAtomic(t)
	if err := NewTable(a.Config, "leases").Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ahead time.Duration // changes between the rounds only
	all := make([]*ShardLocks, 8)
	for i := range all {
		all[i] = NewShardLocks(a.Config, "leases", "relay")
		all[i].now = func() time.Time { return time.Now().Add(ahead) }
	}
	for round := range 2 * len(all) {
		held := make([]bool, len(all))
		var wg sync.WaitGroup
		for i, l := range all {
			wg.Go(func() {
				until, _, err := l.Take(t.Context(), "shard")
				if err != nil {
					t.Error(err)
				}
				held[i] = !until.IsZero()
			})
		}
		wg.Wait()
		holder := slices.Index(held, true)
		switch takes := round%2 == 0; {
		case takes && (holder < 0 || slices.Contains(held[holder+1:], true)):
			t.Fatalf("round %d of %d: held by %v", round, len(all), held)
		case !takes && holder >= 0:
			t.Fatalf("round %d: %d has it before the time of the dead is up", round, holder)
		}
		if round%2 == 0 {
			all = slices.Delete(all, holder, holder+1)
		} else {
			ahead += leaseTime + time.Second
		}
		if len(all) == 0 {
			break
		}
	}
	if len(all) > 0 {
		t.Errorf("%d never had it", len(all))
	}
}

// TestTwoControlPlanes: of two control planes of a table one returns each change. When
// it ends, or dies and its lock expires, the other one continues after the last
// processed change.
func TestTwoControlPlanes(t *testing.T) {
	t.Parallel()
	a := awstest.ShareAtomic(t)
	limits := newTable(t, a)
	if err := NewTable(a.Config, "leases").Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := func(ahead time.Duration) *Changes {
		stream, err := OpenStream(t.Context(), a.Config, "limits")
		if err != nil {
			t.Fatal(err)
		}
		leases := NewShardLocks(a.Config, "leases", "relay")
		leases.now = func() time.Time { return time.Now().Add(ahead) }
		return NewChanges(stream, leases, slog.New(slog.DiscardHandler))
	}
	put(t, limits, item("TENANT#a", 0, `{}`))
	first, second := open(0), open(0)
	changesUntil(t, first, "TENANT#a")
	if items, err := second.Next(t.Context()); err != nil || len(items) > 0 {
		t.Errorf("both return changes: %v, %v", items, err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, limits, item("TENANT#b", 0, `{}`))
	if got := changesUntil(t, second, "TENANT#b"); len(got) != 1 {
		t.Errorf("the other one returned %+v", got)
	}
	// The second one dies: it releases nothing.
	put(t, limits, item("TENANT#c", 0, `{}`))
	third, late := open(0), open(leaseTime+time.Second)
	if items, err := third.Next(t.Context()); err != nil || len(items) > 0 {
		t.Errorf("the shard of one that may live is read: %v, %v", items, err)
	}
	if got := changesUntil(t, late, "TENANT#c"); len(got) != 1 {
		t.Errorf("after one that died: %+v", got)
	}
}

// changesUntil returns the changes up to one of an item.
func changesUntil(t *testing.T, c *Changes, key string) []table.Item {
	t.Helper()
	return collect(t, "the change of "+key, doneEach(itemChanges{c, &[]string{}}), func(all []table.Item) bool {
		return len(all) > 0 && all[len(all)-1].Key == key
	})
}

// TestReplace: an item is written if the stored one has the version that was read, or
// none, including versions written by hand.
func TestReplace(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	limits := newTable(t, a)
	good := put(t, limits, item("TENANT#a", 0, `{"plan":"p"}`))
	next := good
	next.Version = 7
	for _, was := range []*table.Item{nil, {}, {Version: 2}, {InvalidVersion: "1.5"}} {
		if err := limits.Replace(t.Context(), next, was); !errors.Is(err, ErrConflict) {
			t.Errorf("over version 1 as if it were %+v: %v", was, err)
		}
	}
	if err := limits.Replace(t.Context(), next, &good); err != nil {
		t.Error(err)
	}
	if now, _, err := limits.Get(t.Context(), "TENANT#a"); err != nil || now.Version != 7 || string(now.Body) != string(good.Body) {
		t.Errorf("%+v, %v", now, err)
	}
	odd := func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	for name, version := range map[string]types.AttributeValue{
		"word": text("7"), "zero": number(0), "none": nil, "fraction": odd("1.5"), "negative": odd("-1"), "huge": odd("99999999999999999999"), "last": number(1<<63 - 1),
	} {
		bare := map[string]types.AttributeValue{attrKey: text("TENANT#" + name), attrBody: text(`{"plan":"by hand"}`)}
		if version != nil {
			bare[attrVersion] = version
		}
		writeByHand(t, a, bare)
		found, ok, err := limits.Get(t.Context(), "TENANT#"+name)
		if !ok || err != nil || found.Version != 0 || found.IsLimits() {
			t.Errorf("what was written by hand with the version %v is read as %+v, %v", version, found, err)
		}
		found.Actor, found.At = "ann", time.Now().UTC()
		if written, err := limits.Put(t.Context(), found); err != nil || written.Version != 1 {
			t.Errorf("over what was written by hand with the version %v: %+v, %v", version, written, err)
		}
	}
}
