package table

import (
	"errors"
	"time"
)

// ErrMissed is returned by what receives messages when there was nobody to be told for a
// while: the table has to be read again.
var ErrMissed = errors.New("changes of the limits may have been missed")

// ErrUnwritable is returned for an item that a database refuses for what it is: another try has
// the same end.
var ErrUnwritable = errors.New("the item cannot be written")

// Message is what proxies are told: an item that has changed, or what the whole table is.
type Message struct {
	Item *Item `json:"item,omitempty"`
	// Digest is of the whole table, at a moment, and the next one follows in Every seconds.
	Digest *Digest `json:"digest,omitempty"`
	Every  int64   `json:"every,omitempty"`
	// Reread says that something has changed that is too large for a message: the table has
	// to be read.
	Reread bool      `json:"reread,omitempty"`
	At     time.Time `json:"at"` // when the message was made, in UTC
}
