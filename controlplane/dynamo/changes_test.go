package dynamo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awstest"
)

// openChanges returns the changes of the table, and the keys of other changes.
func openChanges(t *testing.T, a *awstest.AWS) (c itemChanges, lost *[]string) {
	t.Helper()
	stream, err := OpenStream(t.Context(), a.Config, "limits")
	if err != nil {
		t.Fatal(err)
	}
	leases := "leases-" + rand.Text()
	if err := NewTable(a.Config, leases).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost = &[]string{}
	return itemChanges{NewChanges(stream, NewShardLocks(a.Config, leases, "test"), slog.New(slog.DiscardHandler)), lost}, lost
}

// itemChanges separates the items of versioned changes from the keys of other changes.
type itemChanges struct {
	*Changes
	lost *[]string
}

func (c itemChanges) Next(ctx context.Context) (items []table.Item, err error) {
	records, err := c.Changes.Next(ctx)
	for _, r := range records {
		switch {
		case r.Versioned():
			items = append(items, *r.After)
		case !r.Expired():
			*c.lost = append(*c.lost, r.Key())
		}
	}
	return items, err
}

// doneEach returns Next with Done after it.
func doneEach(c itemChanges) func(context.Context) ([]table.Item, error) {
	return func(ctx context.Context) ([]table.Item, error) {
		items, err := c.Next(ctx)
		if err != nil {
			return nil, err
		}
		return items, c.Done(ctx)
	}
}

// TestEveryChangeIsReturned: while four writers write, every change is returned at
// least once, those of each item in order and none missing, tombstones included.
// Changes before the start are returned, too.
func TestEveryChangeIsReturned(t *testing.T) {
	t.Parallel()
	a := awstest.ShareAtomic(t)
	limits := newTable(t, a)
	before := put(t, limits, item("SHARED", 0, `{}`))
	c, lost := openChanges(t, a)
	const writers, writes = 4, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			it := item(fmt.Sprintf("TENANT#%d", w), 0, `{}`)
			for i := range writes {
				next := it
				if i%5 == 4 {
					next = tombstone(it.Key, it.Version)
				}
				written, err := limits.Put(t.Context(), next)
				if err != nil {
					t.Error(err)
					return
				}
				it.Version = written.Version
			}
		})
	}
	got := collect(t, "all changes", doneEach(c), func(got []table.Item) bool {
		return len(slices.Compact(slices.Sorted(slices.Values(names(got))))) == 1+writers*writes
	})
	wg.Wait()
	if got[0].Key != before.Key {
		t.Errorf("%d changes, the first of %s", len(got), got[0].Key)
	}
	latest := map[string]int64{}
	for _, it := range got {
		if v := latest[it.Key]; it.Version != v+1 && it.Version != v {
			t.Errorf("%s: version %d after %d", it.Key, it.Version, latest[it.Key])
		}
		if it.Deleted != (it.Key != "SHARED" && it.Version%5 == 0) || it.Actor != "ann" {
			t.Errorf("told %+v", it)
		}
		latest[it.Key] = it.Version
	}
	if len(*lost) != 0 {
		t.Errorf("lost: %v", *lost)
	}
}

// TestChangesAreReturnedAgain: changes are returned again until Done is called, with
// new ones, and not afterwards.
func TestChangesAreReturnedAgain(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	limits := newTable(t, a)
	c, _ := openChanges(t, a)
	put(t, limits, item("TENANT#a", 0, `{}`))
	first := collect(t, "the change", c.Next, atLeast[table.Item](1))
	again := collect(t, "the change again", c.Next, atLeast[table.Item](1))
	if want := []string{"TENANT#a/1"}; !slices.Equal(names(first), want) || !slices.Equal(names(again), want) {
		t.Errorf("got %v, and then %v", names(first), names(again))
	}
	put(t, limits, item("TENANT#b", 0, `{}`))
	both := func(all []table.Item) bool { return len(all) > 0 && all[len(all)-1].Key == "TENANT#b" }
	more := collect(t, "both changes", c.Next, both)
	if !slices.Contains(names(more), "TENANT#a/1") {
		t.Errorf("got only %v", names(more))
	}
	if err := c.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, limits, item("TENANT#c", 0, `{}`))
	if rest := collect(t, "the last change", doneEach(c), atLeast[table.Item](1)); !slices.Equal(names(rest), []string{"TENANT#c/1"}) {
		t.Errorf("after Done: %v", names(rest))
	}
}

// TestChangesAreReturnedAgainAfterAnError: a read that failed after others had
// succeeded loses nothing.
func TestChangesAreReturnedAgainAfterAnError(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	limits := newTable(t, a)
	c, _ := openChanges(t, a)
	put(t, limits, item("TENANT#a", 0, `{}`))
	collect(t, "the change", c.Next, atLeast[table.Item](1))
	put(t, limits, item("TENANT#b", 0, `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if items, err := c.Next(ctx); err == nil {
		t.Fatalf("read without a context: %v", names(items))
	}
	got := collect(t, "both changes", doneEach(c), atLeast[table.Item](2))
	if !slices.Equal(names(got), []string{"TENANT#a/1", "TENANT#b/1"}) {
		t.Errorf("told %v", names(got))
	}
}

// TestFailingShard: changes of other shards are returned while one shard cannot be
// read, and the failure is logged once.
func TestFailingShard(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	limits := newTable(t, a)
	c, _ := openChanges(t, a)
	var log strings.Builder
	c.log = slog.New(slog.NewTextHandler(&log, nil))
	if err := c.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.looked = time.Now().Add(time.Hour) // so that the list of shards is not updated
	c.shards["shardId-none"] = &shardReader{}
	for n := range 2 {
		put(t, limits, item(fmt.Sprint("TENANT#", n), 0, `{}`))
		items, err := c.Next(t.Context())
		if err != nil || len(items) != 1 {
			t.Fatalf("got %v, %v", names(items), err)
		}
		if err := c.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if items, err := c.Next(t.Context()); err == nil {
		t.Errorf("nothing is wrong, with %v", names(items))
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "failed to read stream shard, retrying\" shard=shardId-none error=") {
		t.Errorf("the log says\n%s", text)
	}
}

// TestLost: a write or a deletion by hand is reported separately; the expiry of a
// tombstone is not.
func TestLost(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	limits := newTable(t, a)
	c, lost := openChanges(t, a)
	put(t, limits, item("TENANT#kept", 0, `{}`))
	put(t, limits, item("TENANT#deleted", 0, `{}`))
	deleteByHand(t, a, "TENANT#deleted")
	put(t, limits, item("TENANT#expired", 0, `{}`))
	put(t, limits, tombstone("TENANT#expired", 1))
	deleteByHand(t, a, "TENANT#expired")
	writeByHand(t, a, map[string]types.AttributeValue{attrKey: text("TENANT#unversioned"), attrBody: text(`{}`)})
	writeByHand(t, a, map[string]types.AttributeValue{attrKey: text("note"), attrVersion: number(1), attrBody: text(`{}`)})
	writeByHand(t, a, map[string]types.AttributeValue{attrKey: text("TENANT#word"), attrVersion: text("1")})
	put(t, limits, item("TENANT#last", 0, `{}`))
	got := collect(t, "the last change", doneEach(c), func(all []table.Item) bool { return slices.Contains(names(all), "TENANT#last/1") })
	want := []string{"TENANT#kept/1", "TENANT#deleted/1", "TENANT#expired/1", "TENANT#expired/2", "TENANT#last/1"}
	if !slices.Equal(names(got), want) {
		t.Errorf("got %v, want %v", names(got), want)
	}
	if want := []string{"TENANT#deleted", "TENANT#unversioned", "note", "TENANT#word"}; !slices.Equal(*lost, want) {
		t.Errorf("lost %v, want %v", *lost, want)
	}
}

// TestWriteThatKeepsTheVersion: an edit in AWS's console does not increase the version.
// It is reported separately and not published: some proxies would use it and others
// not, and no digest would show that.
func TestWriteThatKeepsTheVersion(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	limits := newTable(t, a)
	c, lost := openChanges(t, a)
	put(t, limits, item("TENANT#a", 0, `{}`))
	put(t, limits, item("TENANT#a", 1, `{}`))
	same := maps.Clone(raw(t, a, "TENANT#a"))
	same[attrBody] = text(`{"plan":"by hand"}`)
	writeByHand(t, a, same)
	older := maps.Clone(same)
	older[attrVersion] = number(1)
	writeByHand(t, a, older)
	put(t, limits, item("TENANT#last", 0, `{}`))
	got := collect(t, "the last change", doneEach(c), func(all []table.Item) bool { return slices.Contains(names(all), "TENANT#last/1") })
	if want := []string{"TENANT#a/1", "TENANT#a/2", "TENANT#last/1"}; !slices.Equal(names(got), want) {
		t.Errorf("got %v, want %v", names(got), want)
	}
	if want := []string{"TENANT#a", "TENANT#a"}; !slices.Equal(*lost, want) {
		t.Errorf("lost %v, want %v", *lost, want)
	}
}

// TestBodyThatIsNoJSON: such a body can be sent as a string, so that it does not block
// all other changes.
func TestBodyThatIsNoJSON(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	newTable(t, a)
	c, _ := openChanges(t, a)
	writeByHand(t, a, map[string]types.AttributeValue{
		attrKey: text("TENANT#a"), attrVersion: number(1), attrBody: text("{\x00<no \"JSON"),
		attrActor: text("ann"), attrAt: text("2026-01-02T03:04:05Z"),
	})
	got := collect(t, "the change", doneEach(c), atLeast[table.Item](1))
	body, err := json.Marshal(got[0])
	var back table.Item
	if err == nil {
		err = json.Unmarshal(body, &back)
	}
	var said string
	if err := json.Unmarshal(back.Body, &said); err != nil || said != "{\x00<no \"JSON" {
		t.Errorf("it is told as %q: %v", said, err)
	}
	if err != nil {
		t.Errorf("it cannot be told: %v", err)
	}
}

// TestFailingShardIsNotNoted: changes that could not be published are returned again,
// although their shard cannot be read for a moment in which those of another one are
// done.
func TestFailingShardIsNotNoted(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	limits := newTable(t, a)
	c, _ := openChanges(t, a)
	put(t, limits, item("TENANT#lost", 0, `{}`))
	items, err := c.Next(t.Context())
	if err != nil || len(items) != 1 {
		t.Fatal(names(items), err)
	}
	// SNS rejects the change: Done is not called. Then the shard cannot be read once,
	// and another one, which the emulator does not have, has changes that are
	// published.
	for _, sh := range c.shards {
		sh.iterator = "expired"
	}
	if items, err := c.Next(t.Context()); err == nil {
		t.Fatal("it can be read", names(items))
	}
	if err := c.Done(t.Context()); err != nil { // as Relay does after it handled the other shard's
		t.Fatal(err)
	}
	put(t, limits, item("TENANT#next", 0, `{}`))
	items, err = c.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := names(items); len(got) != 2 {
		t.Errorf("told are only %v", got)
	}
}
