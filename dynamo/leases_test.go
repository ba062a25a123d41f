package dynamo

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/internal/awstest"
	"github.com/limitgate/limitgate/table"
)

// TestLeases: a shard is one's at a time, until it is released or its time is up; who
// comes next goes on where it was told. Each use has leases of its own.
func TestLeases(t *testing.T) {
	t.Parallel()
	a := awstest.Start(t)
	if err := NewTable(a.Config, "leases").Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine, theirs, other := NewLeases(a.Config, "leases", "relay"), NewLeases(a.Config, "leases", "relay"), NewLeases(a.Config, "leases", "audit")
	ahead := time.Duration(0)
	theirs.now = func() time.Time { return time.Now().Add(ahead) }
	take := func(l *Leases, wantHeld bool, wantAfter string) {
		t.Helper()
		until, after, err := l.Take(t.Context(), "shard")
		if err != nil || until.IsZero() == wantHeld || after != wantAfter {
			t.Errorf("held until %s after %q, %v; want held = %v after %q", until, after, err, wantHeld, wantAfter)
		}
	}
	note := func(l *Leases, sequence string) {
		t.Helper()
		if err := l.Note(t.Context(), "shard", sequence); err != nil {
			t.Error(err)
		}
	}
	take(mine, true, "")
	take(theirs, false, "")
	take(other, true, "")
	note(mine, "17")
	note(theirs, "99") // of what is not theirs
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

// TestTwoControlPlanes: of two that follow a table one tells each change, and when it ends
// the other goes on behind what was told.
func TestTwoControlPlanes(t *testing.T) {
	t.Parallel()
	a := awstest.Start(t)
	limits := newTable(t, a)
	if err := NewTable(a.Config, "leases").Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := func() *Changes {
		stream, err := OpenStream(t.Context(), a.Config, "limits")
		if err != nil {
			t.Fatal(err)
		}
		return NewChanges(stream, NewLeases(a.Config, "leases", "relay"))
	}
	first, second := open(), open()
	until := func(c *Changes, key string) (told []table.Item) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for {
			items, err := doneEach(c)(ctx)
			if err != nil {
				t.Fatal(err)
			}
			told = append(told, items...)
			if len(told) > 0 && told[len(told)-1].Key == key {
				return told
			}
		}
	}
	put(t, limits, item("TENANT#a", 0, `{}`))
	until(first, "TENANT#a")
	if items, err := second.Next(t.Context()); err != nil || len(items) > 0 || second.Whole() || !first.Whole() {
		t.Errorf("both tell: %v, %v", items, err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, limits, item("TENANT#b", 0, `{}`))
	if told := until(second, "TENANT#b"); len(told) != 1 || !second.Whole() {
		t.Errorf("the other one tells %+v", told)
	}
}

// TestRestore: an item is as it was, as a newer version, unless somebody was faster.
func TestRestore(t *testing.T) {
	t.Parallel()
	a := awstest.Start(t)
	limits := newTable(t, a)
	good := put(t, limits, item("TENANT#a", 0, `{"plan":"p"}`))
	back, err := limits.Restore(t.Context(), good, &good, "control-plane")
	if err != nil || back.Version != good.Version+1 {
		t.Errorf("%+v, %v", back, err)
	}
	now, _, err := limits.Get(t.Context(), "TENANT#a")
	if err != nil || now.Version != back.Version || now.Actor != "control-plane" || string(now.Body) != string(good.Body) {
		t.Errorf("%+v, %v", now, err)
	}
	for _, found := range []*table.Item{nil, &good} {
		if _, err := limits.Restore(t.Context(), good, found, "control-plane"); !errors.Is(err, ErrConflict) {
			t.Errorf("over what somebody has written since: %v", err)
		}
	}
	gone := good
	gone.Key = "TENANT#gone"
	gone.Version = 7
	if back, err := limits.Restore(t.Context(), gone, nil, "control-plane"); err != nil || back.Version != 8 {
		t.Errorf("what was deleted: %+v, %v", back, err)
	}
	for name, version := range map[string]types.AttributeValue{"word": text("7"), "zero": number(0), "none": nil} {
		good := put(t, limits, item("TENANT#"+name, 0, `{"plan":"p"}`))
		odd := map[string]types.AttributeValue{attrKey: text(good.Key), attrBody: text(`{"plan":"by hand"}`)}
		if version != nil {
			odd[attrVersion] = version
		}
		name := "limits"
		if _, err := dynamodb.NewFromConfig(a.Config).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: odd}); err != nil {
			t.Fatal(err)
		}
		found, _, err := limits.Get(t.Context(), good.Key)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := limits.Restore(t.Context(), good, &found, "control-plane"); err != nil || back.Version != 2 {
			t.Errorf("what was written by hand with the version %v: %+v, %v", version, back, err)
		}
	}
}
