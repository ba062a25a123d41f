package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// Change is the change to be made to one item.
type Change struct {
	Key    string
	Before *Item // nil for none or a tombstone
	After  json.RawMessage
}

// Kind returns a word for people: add, change or delete.
func (c *Change) Kind() string {
	switch {
	case c.Before == nil:
		return "add"
	case c.After == nil:
		return "delete"
	default:
		return "change"
	}
}

// Diff returns the changes that turn the items of a table into the parts of a file, in
// the order in which they are to be written. Items that others need are written first
// and deleted last: plans before tenants. Bodies are equal if they mean the same JSON.
// Items that are not parts of a file stay.
func Diff(items map[string]Item, parts map[string]json.RawMessage) []Change {
	var changes []Change
	for key, body := range parts {
		before := live(items, key)
		if before == nil || !Equal(before.Body, body) {
			changes = append(changes, Change{key, before, body})
		}
	}
	for key := range items {
		if before := live(items, key); before != nil && parts[key] == nil && IsPart(key) {
			changes = append(changes, Change{key, before, nil})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.turn(), b.turn()), cmp.Compare(a.Key, b.Key))
	})
	return changes
}

// Turns splits the result of Diff into groups that may be written concurrently. Each
// group must be written completely before the next one begins.
func Turns(changes []Change) (turns [][]Change) {
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].turn() == changes[0].turn() {
			n++
		}
		turns, changes = append(turns, changes[:n]), changes[n:]
	}
	return turns
}

// turn is the sort key of changes: plans, the shared item, tenants, and then deletions
// in the reverse order.
func (c *Change) turn() int {
	turn := 1
	switch {
	case IsPlan(c.Key):
		turn = 0
	case IsTenant(c.Key):
		turn = 2
	}
	if c.After == nil {
		return 5 - turn
	}
	return turn
}

func live(items map[string]Item, key string) *Item {
	it, ok := items[key]
	if !ok || it.Deleted {
		return nil
	}
	return &it
}

// Equal reports whether two bodies are the same JSON. Numbers are compared as text.
func Equal(a, b json.RawMessage) bool {
	x, okA := canonical(a)
	y, okB := canonical(b)
	if !okA || !okB {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x, y)
}

// canonical returns JSON in a canonical form.
func canonical(body json.RawMessage) (text []byte, ok bool) {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if !json.Valid(body) || decoder.Decode(&value) != nil {
		return nil, false
	}
	text, err := json.Marshal(value)
	return text, err == nil
}
