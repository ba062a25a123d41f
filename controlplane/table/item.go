// Package table is the model of limits that are kept in a database, item by item: what an
// item is, which of two is newer, and how a whole table is told from another. It promises
// that items may arrive in any order, and more than once, with the same result.
package table

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"
)

// Item is one item of the table: a tenant, a plan or all the rest, as it was written. Its
// body is a part of a limits file, see config.SplitLimits.
type Item struct {
	Key  string          `json:"key"` // SHARED, PLAN#name or TENANT#name
	Body json.RawMessage `json:"body,omitempty"`
	// Version grows with each write of the item, also of one that deletes it.
	Version int64 `json:"version"`
	// InvalidVersion is what stands in the place of a version that was read and is none, such as a
	// fraction: writing over it needs to name it.
	InvalidVersion string    `json:"-"`
	Actor          string    `json:"actor"` // who wrote it
	At             time.Time `json:"at"`    // when, in UTC
	// Deleted says that the item is a tombstone: it is kept for a while so that whoever
	// missed the deletion learns of it.
	Deleted bool `json:"deleted,omitempty"`
}

// IsLimits reports whether it can be an item of limits: it says who wrote it and when. What
// else is in a table is not used, and not counted.
func (it *Item) IsLimits() bool {
	return IsKey(it.Key) && it.Version > 0 && it.Version <= MaxVersion && it.Actor != "" && !it.At.IsZero()
}

// MaxVersion is the largest version of an item: JSON readers lose digits of larger numbers.
// Only a write by hand has it, and no version follows.
const MaxVersion = 1 << 53

// Same reports whether two items of a key make the same limits: in version, body and whether
// they are deleted. Bodies are the same in spite of spaces, which messages do not carry.
func Same(a, b *Item) bool {
	return a.Version == b.Version && a.Deleted == b.Deleted && (bytes.Equal(a.Body, b.Body) || bytes.Equal(compact(a.Body), compact(b.Body)))
}

// compact returns a body as encoding/json writes it into a message: without spaces, and with
// <, > and & escaped. A body that is not JSON stays as it is.
func compact(body json.RawMessage) []byte {
	var without, escaped bytes.Buffer
	if json.Compact(&without, body) != nil {
		return body
	}
	json.HTMLEscape(&escaped, without.Bytes())
	return escaped.Bytes()
}

// TombstoneTTL is how long a deleted item is kept, so that everybody learns of it. An item
// that is made again after that begins with version 1.
const TombstoneTTL = 30 * 24 * time.Hour

// Digest is of a table's content: how many items it has that are not deleted, and a sum over
// the keys, versions and bodies of all, which is the same in any order.
type Digest struct {
	Count int64  `json:"count"`
	Sum   uint64 `json:"sum"`
}

// Add counts an item in, and Remove out.
func (d *Digest) Add(it *Item) { d.change(it, 1) }

// Remove counts an item out that was counted in.
func (d *Digest) Remove(it *Item) { d.change(it, -1) }

func (d *Digest) change(it *Item, sign int64) {
	if it.Deleted { // tombstones go at different times
		return
	}
	d.Count += sign
	d.Sum += uint64(sign) * it.hash()
}

// hash is of the key, the version and the body.
func (it *Item) hash() uint64 {
	b := binary.BigEndian.AppendUint64([]byte(it.Key+"\x00"), uint64(it.Version))
	sum := sha256.Sum256(append(b, compact(it.Body)...))
	return binary.BigEndian.Uint64(sum[:])
}
