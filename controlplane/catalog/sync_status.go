package catalog

import (
	"errors"
	"fmt"
	"time"
)

// errReverted is the error of a Syncer while it distrusts messages.
var errReverted = errors.New("reverted limits that messages named and the table does not have, and follows digests alone for two minutes: others write to its queue, or the table was changed behind its control plane")

// SyncStatus is the status of a Syncer.
type SyncStatus struct {
	Confirmed time.Time // when the catalog last equalled the table, zero for never
	Kept      time.Time // when the snapshot was written that is in use
	Err       error     // of the last exchange, or why the catalog may be stale, or nil
	Bad       int64     // messages that could not be parsed
	Repairs   int64     // readings of the table after the start
}

// Status returns the present status. Any number of goroutines may call it.
func (f *Syncer) Status() SyncStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := SyncStatus{Confirmed: f.reread.confirmed, Kept: f.kept, Bad: f.bad, Repairs: f.repairs}
	switch {
	case f.failed != nil:
		st.Err = f.failed
	case f.reread.distrusts(f.catalog.opts.Now()):
		st.Err = errReverted
	case f.reread.silent:
		st.Err = fmt.Errorf("no digest of the limits has come since %s: is a control plane running, and its topic subscribed? The table is read about every 40 s instead", f.reread.heard.UTC().Format(time.RFC3339))
	}
	return st
}
