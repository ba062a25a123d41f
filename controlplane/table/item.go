// Package table is the model of limits that are stored in a database, item by item: the
// items, the order of their versions, and the digest of a table. It promises that items
// may arrive in any order, and more than once, with the same result.
package table

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"
)

// Item is one item of the table as it was written: a tenant, a plan, the shared rest of
// a limits file, a revision or the set of cells. The body of a tenant, a plan or the
// shared item is a part of a limits file, see config.SplitLimits.
type Item struct {
	Key  string          `json:"key"` // SHARED, PLAN#name, TENANT#name, CELLS or REVISION#number
	Body json.RawMessage `json:"body,omitempty"`
	// Version grows with each write of the item, deletions included.
	Version int64 `json:"version"`
	// InvalidVersion is the version attribute of an item if it is not a valid version,
	// such as a fraction: a conditional write over the item must name it.
	InvalidVersion string    `json:"-"`
	Actor          string    `json:"actor"` // the writer
	At             time.Time `json:"at"`    // the time of the write, in UTC
	// Deleted marks a tombstone: it is stored for TombstoneTTL so that proxies that
	// missed the deletion find it.
	Deleted bool `json:"deleted,omitempty"`
}

// IsLimits reports whether the item is a limits item: it has a valid key and version,
// an actor and a time. Other items of a table are ignored, and not counted in digests.
func (it *Item) IsLimits() bool {
	return IsKey(it.Key) && it.Version > 0 && it.Version <= MaxVersion && it.Actor != "" && !it.At.IsZero()
}

// Flaw returns why no proxy can use the item, in the names of its attributes, or "".
func (it *Item) Flaw() string {
	var lacks []string
	for _, attribute := range []struct {
		name  string
		there bool
	}{
		{"body", len(it.Body) > 0 || it.Deleted},
		{"version", it.Version > 0 && it.Version <= MaxVersion},
		{"updated_by", it.Actor != ""},
		{"updated_at", !it.At.IsZero()},
	} {
		if !attribute.there {
			lacks = append(lacks, attribute.name)
		}
	}
	switch {
	case !IsKey(it.Key):
		return "its key is not that of limits"
	case len(lacks) > 0:
		return "it lacks a valid " + strings.Join(lacks, ", ") + ": write items by limitgate limits push"
	}
	return ""
}

// MaxVersion is the largest version of an item: JSON readers lose digits of larger
// numbers. Only a write by hand can set it, and it has no successor.
const MaxVersion = 1 << 53

// Same reports whether two items with the same key make the same limits: same version,
// body and deletion. Spaces in bodies are ignored, because messages do not carry them.
func Same(a, b *Item) bool {
	return a.Version == b.Version && a.Deleted == b.Deleted && (bytes.Equal(a.Body, b.Body) || bytes.Equal(compact(a.Body), compact(b.Body)))
}

// compact returns a body as encoding/json writes it into a message: without spaces, and
// with <, > and & escaped. A body that is not JSON is returned unchanged.
func compact(body json.RawMessage) []byte {
	var without, escaped bytes.Buffer
	if json.Compact(&without, body) != nil {
		return body
	}
	json.HTMLEscape(&escaped, without.Bytes())
	return escaped.Bytes()
}

// TombstoneTTL is how long a tombstone is stored, so that all proxies receive it. An
// item that is created again after that begins with version 1.
const TombstoneTTL = 30 * 24 * time.Hour

// Digest is the digest of a table: how many items are not deleted, and a sum over their
// keys, versions and bodies, which does not depend on the order.
type Digest struct {
	Count int64  `json:"count"`
	Sum   uint64 `json:"sum"`
}

// Add adds an item to the digest.
func (d *Digest) Add(it *Item) { d.change(it, 1) }

// Remove removes an item that was added.
func (d *Digest) Remove(it *Item) { d.change(it, -1) }

func (d *Digest) change(it *Item, sign int64) {
	if it.Deleted { // tombstones expire at different times
		return
	}
	d.Count += sign
	d.Sum += uint64(sign) * it.hash()
}

// hash returns a hash of the key, the version and the body.
func (it *Item) hash() uint64 {
	b := binary.BigEndian.AppendUint64([]byte(it.Key+"\x00"), uint64(it.Version))
	sum := sha256.Sum256(append(b, compact(it.Body)...))
	return binary.BigEndian.Uint64(sum[:])
}
