package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
)

// Change is what has to become of one item.
type Change struct {
	Key    string
	Before *Item // nil where there is none, or a tombstone
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

// Diff returns what makes items of a table the parts of a file, in the order in which
// they are to be written: what others need comes first, plans before tenants, and goes
// last. Bodies are equal when they mean the same JSON. Items that are no parts of a file stay.
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

// Turns splits what Diff returned into what may be written at the same time. Each part is
// to be written whole before the next one begins.
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

// turn orders changes: plans, the shared item, tenants, and then what is deleted, the
// other way round.
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

// Equal reports whether two bodies are the same JSON, numbers as they are written.
func Equal(a, b json.RawMessage) bool {
	x, okA := canonical(a)
	y, okB := canonical(b)
	if !okA || !okB {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x, y)
}

// canonical writes JSON anew, in one way of the many.
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
