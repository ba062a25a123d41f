package table

import (
	"errors"
	"time"
)

// ErrMissed is returned by a receiver of messages that may have missed some, as when
// its queue did not exist: the table has to be read again.
var ErrMissed = errors.New("changes of the limits may have been missed")

// ErrUnwritable is returned for an item that a database rejects as invalid: a retry
// cannot succeed.
var ErrUnwritable = errors.New("the item cannot be written")

// Message is a message to proxies: an item that has changed, or the digest of the
// table.
type Message struct {
	Item *Item `json:"item,omitempty"`
	// Digest is the digest of the whole table at one time. The next one follows in
	// Every seconds.
	Digest *Digest `json:"digest,omitempty"`
	Every  int64   `json:"every,omitempty"`
	// Reread reports a change that is too large for a message: the table has to be
	// read.
	Reread bool      `json:"reread,omitempty"`
	At     time.Time `json:"at"` // when the message was made, in UTC
}
