package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is how long a file must be left alone before it is read:
	// editors and deployments write in several steps.
	settleTime = 100 * time.Millisecond
	// settleMost is how long a folder that is never left alone, because a log is
	// written there, may put off reading the file.
	settleMost = time.Second
	// rewatchPause is how often a folder that has gone is looked for.
	rewatchPause = time.Second
)

// Watcher calls a function when the content of a file has changed. It watches
// the folder, because editors replace files and Kubernetes swaps symlinks.
type Watcher struct {
	path    string
	reload  func()
	trigger chan struct{} // one slot: a reload that is due covers later wishes
	last    [sha256.Size]byte
}

// NewWatcher returns a watcher of the file at path. Reload is called by Run, one
// call at a time, when the content is another one than now, and from then on
// whenever it changes, goes or comes back.
func NewWatcher(path string, reload func()) *Watcher {
	w := &Watcher{path: path, reload: reload, trigger: make(chan struct{}, 1)}
	w.last, _ = w.sum()
	return w
}

// Trigger makes Run call reload although nothing may have changed. It never
// blocks; any goroutine may call it.
func (w *Watcher) Trigger() {
	select {
	case w.trigger <- struct{}{}:
	default:
	}
}

// Run watches until ctx ends, and returns nil then. It fails at once when the
// folder of the file cannot be watched; a folder that goes later is waited for.
// It may be called once.
func (w *Watcher) Run(ctx context.Context) error {
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch limits: %w", err)
	}
	defer func() { _ = watch.Close() }()
	folder := filepath.Dir(w.path)
	if err := watch.Add(folder); err != nil {
		return fmt.Errorf("watch folder %s: %w", folder, err)
	}
	// What happened before the folder was watched is in no event.
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	var since time.Time // of the oldest event not looked at; zero for none
	rewatch := time.NewTicker(rewatchPause)
	defer rewatch.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.trigger:
			w.last, _ = w.sum()
			w.reload()
		case <-watch.Events:
			since = postpone(settled, since)
		case <-watch.Errors:
			// Events were lost: look at the file.
			since = postpone(settled, since)
		case <-settled.C:
			since = time.Time{}
			w.look()
		case <-rewatch.C:
			// A folder that was removed and made again has no watch any more.
			if len(watch.WatchList()) == 0 && watch.Add(folder) == nil {
				since = postpone(settled, since)
			}
		}
	}
}

// postpone puts off the look at the file until it has been left alone, but not
// for ever. It returns when the wait began.
func postpone(settled *time.Timer, since time.Time) time.Time {
	if since.IsZero() {
		since = time.Now()
	}
	settled.Reset(min(settleTime, time.Until(since.Add(settleMost))))
	return since
}

// look calls reload if the content is another one than last time. A file that
// cannot be read may be about to be replaced, or be gone for good: reload says
// so, once.
func (w *Watcher) look() {
	sum, _ := w.sum()
	if sum == w.last {
		return
	}
	w.last = sum
	w.reload()
}

// sum returns the checksum of as much of the file as a limits file may have.
func (w *Watcher) sum() (sum [sha256.Size]byte, err error) {
	f, _, err := openRegular(w.path)
	if err != nil {
		return sum, err
	}
	defer func() { _ = f.Close() }()
	content := sha256.New()
	if _, err := io.Copy(content, io.LimitReader(f, MaxLimitsFileBytes+1)); err != nil {
		return sum, fmt.Errorf("read %s: %w", w.path, err)
	}
	content.Sum(sum[:0])
	return sum, nil
}
