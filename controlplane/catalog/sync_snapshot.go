package catalog

import (
	"context"
	"time"
)

// keepSaving writes a snapshot every snapshotEvery if the catalog has changed.
func (f *Syncer) keepSaving(ctx context.Context) {
	tick := time.NewTicker(snapshotEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if f.catalog.Status().Version != f.lastSaved() {
				f.save()
			}
		}
	}
}

func (f *Syncer) save() {
	if f.snapshot == "" {
		return
	}
	saved := f.catalog.Status().Version
	if err := WriteSnapshot(f.snapshot, f.catalog.opts.Name, f.catalog.Items()); err != nil {
		if f.complaints.Allow() {
			f.log.Error("failed to write limits snapshot", "error", err)
		}
		return
	}
	f.complaints.Reset()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved = saved
}

// lastSaved returns the version of the catalog when it was last saved.
func (f *Syncer) lastSaved() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saved
}
