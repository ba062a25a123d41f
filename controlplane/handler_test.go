package controlplane

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/controlplane/table"
)

// shop is a table in memory that fails on request.
type shop struct {
	items map[string]table.Item
	fails bool
}

func (s *shop) Get(_ context.Context, key string) (table.Item, bool, error) {
	it, ok := s.items[key]
	if s.fails {
		return it, false, errDown
	}
	return it, ok, nil
}

func (s *shop) Put(ctx context.Context, it table.Item) (table.Item, error) {
	was := it
	it.Version++
	return it, s.Replace(ctx, it, &was)
}

func (s *shop) Replace(_ context.Context, it table.Item, was *table.Item) error {
	if now, ok := s.items[it.Key]; ok != (was != nil) || ok && now.Version != was.Version {
		return errors.New("somebody was faster")
	}
	s.items[it.Key] = it
	return nil
}

// TestHandle: versioned changes are published in their order, others are reverted,
// invalid ones go to the dead letters, and Handle returns how many were processed
// before the first error.
func TestHandle(t *testing.T) {
	a1, a2, b1, foreign := by("ann", 1, `{}`), by("ann", 2, `{}`), by("ann", 1, `{"b":1}`), table.Item{Key: "somebody's"}
	b1.Key = "TENANT#b"
	gone := by("ann", 3, "")
	records := []table.Record{
		{Sequence: "1", After: &a1},
		{Sequence: "2", After: &foreign},
		{Sequence: "3", Before: &b1}, // deleted by hand
		{Sequence: "4", Before: &a1, After: &a2},
		{Sequence: "5", Before: &gone}, // expired
	}
	type outcome struct {
		told, poison []string
		done         int
		failed       bool
	}
	for _, c := range []struct {
		what                  string
		topic, table, letters bool // fails
		want                  outcome
	}{
		{"all goes well", false, false, false, outcome{[]string{"1", "2"}, []string{"2"}, 5, false}},
		{"nothing can be told", true, false, false, outcome{nil, nil, 0, true}},
		{"the table is away", false, true, false, outcome{[]string{"1"}, []string{"2"}, 2, true}},
		{"letters cannot be sent", false, false, true, outcome{[]string{"1", "2"}, nil, 1, true}},
	} {
		topic, items := &fakeTopic{}, &shop{map[string]table.Item{}, c.table}
		if c.topic {
			topic.fails = 1
		}
		var got outcome
		h := Handler{Publish: topic, Items: items, Log: slog.New(slog.DiscardHandler), DeadLetter: func(_ context.Context, r *table.Record, why string) error {
			if c.letters {
				return errDown
			}
			if !strings.HasPrefix(why, "it was written by hand, and its key is not that of limits") {
				t.Errorf("poison: %q", why)
			}
			got.poison = append(got.poison, r.Sequence)
			return nil
		}}
		done, err := h.Handle(t.Context(), records)
		got.done, got.failed = done, err != nil
		told, _ := topic.got()
		for _, it := range told {
			got.told = append(got.told, string(rune('0'+it.Version)))
		}
		if !slices.Equal(got.told, c.want.told) || !slices.Equal(got.poison, c.want.poison) || got.done != c.want.done || got.failed != c.want.failed {
			t.Errorf("%s: %+v, not %+v", c.what, got, c.want)
		}
		if back := items.items["TENANT#b"]; (back.Version == 2 && back.Actor == Actor) != !c.table {
			t.Errorf("%s: what was deleted by hand is %+v", c.what, back)
		}
	}
}
