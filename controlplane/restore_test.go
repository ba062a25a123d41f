package controlplane

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// by returns an item with an actor.
func by(actor string, version int64, body string) table.Item {
	it := table.Item{Key: "TENANT#a", Version: version, Actor: actor, Body: json.RawMessage(body)}
	if actor != "" {
		it.At = time.Unix(1_700_000_000, 0)
	}
	if body == "" {
		it.Body, it.Deleted = nil, true
	}
	return it
}

// TestRevert: a change without a new version and an actor is reverted by a version that
// is newer than all others, unless a newer one was written since. An item that was
// created again after a deletion by hand continues from its old version.
func TestRevert(t *testing.T) {
	good := by("ann", 5, `{"plan":"free"}`)
	for _, c := range []struct {
		what    string
		good    table.Item
		now     *table.Item
		removed bool
		actor   string // "" for an item that stays
		version int64
		body    string
	}{
		{"removed", good, nil, true, Actor, 6, `{"plan":"free"}`},
		{"changed, and removed since", good, nil, false, Actor, 6, `{"plan":"free"}`},
		{"another body", good, at(by("ann", 5, `{"plan":"gold"}`)), false, Actor, 6, `{"plan":"free"}`},
		{"nobody's version", good, at(by("", 9, `{"plan":"gold"}`)), false, Actor, 10, `{"plan":"free"}`},
		{"without a version", good, at(by("", 0, `{"plan":"gold"}`)), false, Actor, 6, `{"plan":"free"}`},
		{"an older version", good, at(by("ann", 4, `{"plan":"gold"}`)), false, Actor, 6, `{"plan":"free"}`},
		{"somebody's since", good, at(by("bob", 6, `{"plan":"gold"}`)), false, "", 0, ""},
		{"mended already", good, at(by(Actor, 6, `{"plan":"free"}`)), true, "", 0, ""},
		{"nothing changed", good, at(by("ann", 5, `{"plan":"free"}`)), false, "", 0, ""},
		{"its actor removed", good, at(by("", 5, `{"plan":"free"}`)), false, Actor, 6, `{"plan":"free"}`}, // a proxy that starts would ignore it
		{"made again", good, at(by("bob", 1, `{"plan":"gold"}`)), true, "bob", 6, `{"plan":"gold"}`},
		{"mended by an older change", good, at(by(Actor, 4, `{"plan":"old"}`)), true, Actor, 6, `{"plan":"free"}`},
		{"removed at the largest version", by("ann", table.MaxVersion, `{"plan":"free"}`), nil, true, Actor, 1, `{"plan":"free"}`},
		{"nobody's largest version", good, at(by("", table.MaxVersion, `{"plan":"gold"}`)), false, Actor, 6, `{"plan":"free"}`},
		{"somebody's largest version", good, at(by("bob", table.MaxVersion, `{"plan":"gold"}`)), false, "", 0, ""},
		{"a tombstone written over", by("ann", 5, ""), at(by("", 0, `{"plan":"gold"}`)), false, Actor, 6, ""},
	} {
		now := time.Now()
		next, ok := reverted(c.good, c.now, c.removed, now)
		if ok != (c.actor != "") {
			t.Errorf("%s: mended is %v", c.what, ok)
			continue
		}
		if !ok {
			continue
		}
		if next.Actor != c.actor || next.Version != c.version || string(next.Body) != c.body || next.Deleted != (c.body == "") {
			t.Errorf("%s: it becomes %+v", c.what, next)
		}
		if next.Actor == Actor && !next.At.Equal(now) {
			t.Errorf("%s: it was written at %s", c.what, next.At)
		}
	}
}

func at(it table.Item) *table.Item { return &it }
