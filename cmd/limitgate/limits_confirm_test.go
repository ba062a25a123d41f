package main

import (
	"io"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/table"
)

// TestPutBack: only a reverted change can be confirmed, and not over a later change by a
// person.
func TestPutBack(t *testing.T) {
	v1 := tenant(1, "ann", `{"plan":"free"}`)
	edited, again, bare := tenant(1, "ann", `{"plan":"gold"}`), tenant(2, "ann", `{"plan":"silver"}`), tenant(0, "", `{}`)
	back2, back3 := tenant(2, controlplane.Actor, `{"plan":"free"}`), tenant(3, controlplane.Actor, `{"plan":"free"}`)
	bob3, gone := tenant(3, "bob", `{"plan":"silver"}`), tenant(2, "ann", "")
	for what, row := range map[string]struct {
		history []*table.Item
		now     *table.Item // nil for the last of the history
		want    string      // the body, - for none, or the error
	}{
		"an edit":                  {[]*table.Item{nil, v1, edited, back2}, nil, `{"plan":"gold"}`},
		"a deletion":               {[]*table.Item{nil, v1, nil, back2}, nil, "-"},
		"the latest of two":        {[]*table.Item{nil, v1, edited, back2, again, back3}, nil, `{"plan":"silver"}`},
		"two at once":              {[]*table.Item{nil, v1, edited, tenant(1, "ann", `{"plan":"silver"}`), back2}, nil, `{"plan":"silver"}`},
		"a write of nothing since": {[]*table.Item{nil, v1, edited, back2, back2}, nil, `{"plan":"gold"}`},
		"a write of nothing":       {[]*table.Item{nil, v1, v1}, nil, "nothing was reverted: the write by hand of 2026-01-02T04:00:02Z changed no limits"},
		"signed":                   {[]*table.Item{nil, v1, gone}, nil, "nothing was reverted: each change in the audit has an actor"},
		"a person since":           {[]*table.Item{nil, v1, edited, back2, bob3}, nil, "TENANT#a was changed since it was written by hand: version 3 by bob at 2026-01-02T03:04:03Z"},
		"a person just now":        {[]*table.Item{nil, v1, edited, back2}, bob3, "TENANT#a was changed since it was written by hand: version 3 by bob at 2026-01-02T03:04:03Z"},
		"not yet":                  {[]*table.Item{nil, v1, edited}, nil, "TENANT#a was written by hand, and is not reverted yet"},
		"not yet again":            {[]*table.Item{nil, v1, edited, back2, again}, nil, "TENANT#a was written by hand, and is not reverted yet"},
		"deleted just now":         {[]*table.Item{nil, v1, edited, back2}, &table.Item{}, "TENANT#a was written by hand, and is not reverted yet"},
		"made by hand":             {[]*table.Item{nil, bare}, nil, "TENANT#a did not exist before it was written by hand, so nothing was reverted: proxies do not use it until limitgate limits push writes it, from a file that has it"},
		"made again by hand":       {[]*table.Item{nil, v1, gone, bare}, nil, "TENANT#a did not exist before it was written by hand, so nothing was reverted: proxies do not use it until limitgate limits push writes it, from a file that has it"},
	} {
		now := row.now
		if now == nil {
			now = row.history[len(row.history)-1]
		}
		e, err := putBack(entriesOf(row.history...), *now)
		if err != nil {
			if !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		got := "-"
		if e.After != nil {
			got = string(e.After.Body)
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", what, got, row.want)
		}
	}
}

// TestConfirmingNothing: content without limits is not taken for a deletion, and content
// that changes no limit is not written.
func TestConfirmingNothing(t *testing.T) {
	now := tenant(3, controlplane.Actor, `{"plan":"free"}`)
	args := &tableArgs{name: "it", stderr: io.Discard, items: map[string]table.Item{now.Key: *now}}
	empty := tenant(2, "", "")
	empty.Deleted = false
	for want, after := range map[string]*table.Item{
		"the content of TENANT#a that was written by hand has no limits":                                 empty,
		"the content of TENANT#a that was written by hand changes no limit: there is nothing to confirm": tenant(1, "", `{"plan":"free"}`),
	} {
		e := entriesOf(tenant(2, "ann", `{"plan":"free"}`), after)[0]
		if c, err := args.confirming(&e); err == nil || err.Error() != want {
			t.Errorf("%+v, %v, want %s", c, err, want)
		}
	}
}
