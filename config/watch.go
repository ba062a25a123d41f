package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settleTime is the time without events after which a file is read: editors and
	// deployments write in several steps.
	settleTime = 100 * time.Millisecond
	// settleMost is the maximum time by which events in the folder, for example of a log
	// written there, can delay reading the file.
	settleMost = time.Second
	// rewatchPause is the interval at which a folder that has gone is watched for again.
	rewatchPause = time.Second
	// pollPause is the interval at which a file is read where the system can watch no more
	// folders: it allows each user some (fs.inotify.max_user_instances), often 128 in all.
	pollPause = 2 * time.Second
)

// Watcher calls a function when the content of a file has changed. It watches the folder,
// because editors replace files and Kubernetes swaps symlinks.
type Watcher struct {
	path    string
	reload  func()
	trigger chan struct{} // capacity one: a pending reload covers later triggers
	last    [sha256.Size]byte
	cause   string // why the file could not be read, or ""
	open    func() (*fsnotify.Watcher, error)
}

// NewWatcher returns a watcher of the file at path. Run calls reload, one call at a time,
// when the content differs from that at the time of this call, and from then on whenever
// it changes, or the file disappears or returns.
func NewWatcher(path string, reload func()) *Watcher {
	w := &Watcher{path: path, reload: reload, trigger: make(chan struct{}, 1), open: fsnotify.NewWatcher}
	w.note()
	return w
}

// Trigger makes Run call reload even if nothing has changed. It never blocks and is safe
// for concurrent use.
func (w *Watcher) Trigger() {
	select {
	case w.trigger <- struct{}{}:
	default:
	}
}

// Run watches until ctx ends, and then returns nil. It fails at once when there is no folder of
// the file; if the folder disappears later, Run waits for it. Where the system can watch no more
// folders, it reads the file every pollPause. Run may be called once.
func (w *Watcher) Run(ctx context.Context) error {
	folder := filepath.Dir(w.path)
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("watch folder %s: %w", folder, err)
	}
	var events <-chan fsnotify.Event
	var failures <-chan error
	pause := pollPause
	watch := w.watchFolder(folder)
	if watch != nil {
		defer func() { _ = watch.Close() }()
		events, failures, pause = watch.Events, watch.Errors, rewatchPause
	}
	// Changes before the folder was watched cause no event.
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	var since time.Time // time of the oldest unhandled event; zero if there is none
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.trigger:
			w.note()
			w.reload()
		case <-events:
			since = postpone(settled, since)
		case <-failures:
			// Events were lost: check the file.
			since = postpone(settled, since)
		case <-settled.C:
			since = time.Time{}
			w.look()
		case <-tick.C:
			if watch == nil {
				w.look()
			} else if len(watch.WatchList()) == 0 && watch.Add(folder) == nil {
				// A folder that was removed and created again has no watch.
				since = postpone(settled, since)
			}
		}
	}
}

// watchFolder returns a watch of a folder, or nil if the system can watch no more.
func (w *Watcher) watchFolder(folder string) *fsnotify.Watcher {
	watch, err := w.open()
	if err != nil {
		return nil
	}
	if watch.Add(folder) != nil {
		_ = watch.Close()
		return nil
	}
	return watch
}

// postpone delays the check of the file until settleTime has passed without events, but
// by at most settleMost. It returns when the wait began.
func postpone(settled *time.Timer, since time.Time) time.Time {
	if since.IsZero() {
		since = time.Now()
	}
	settled.Reset(min(settleTime, time.Until(since.Add(settleMost))))
	return since
}

// look calls reload if the content differs from the last time. A file that cannot be read
// may be about to be replaced, or be gone for good: reload reports it, once for each cause.
func (w *Watcher) look() {
	before, cause := w.last, w.cause
	if w.note(); w.last != before || w.cause != cause {
		w.reload()
	}
}

// note notes the content of the file, or why it cannot be read.
func (w *Watcher) note() {
	var err error
	w.last, err = w.sum()
	w.cause = ""
	if err != nil {
		w.cause = err.Error()
	}
}

// sum returns the checksum of the file, up to the maximum size of a limits file.
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
