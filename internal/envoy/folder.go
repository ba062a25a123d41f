package envoy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/run"
)

const (
	// lookEvery is how often a folder is read, which follows swaps of links as those of a ConfigMap.
	// A reading that takes long happens less often: lookPart of the time at most.
	lookEvery = time.Second
	lookPart  = 50
)

// Folder loads the configuration of a folder, in the files of envoyproxy/ratelimit, and keeps the last
// good one while these have mistakes.
type Folder struct {
	path  string
	opts  rlsconfig.Options
	apply func(*rlsconfig.Config)
	log   *slog.Logger
	last  [sha256.Size]byte // of the files that were read

	loads, failures atomic.Int64
	stale           atomic.Bool // the files have mistakes, and an earlier configuration is in use
}

// NewFolder returns the configuration of a folder. Apply gets each good configuration.
func NewFolder(path string, opts rlsconfig.Options, log *slog.Logger, apply func(*rlsconfig.Config)) *Folder {
	return &Folder{path: path, opts: opts, apply: apply, log: log}
}

// Load reads the folder and applies its configuration if it has changed. The error has a line for each
// mistake.
func (f *Folder) Load() error {
	files, err := rlsconfig.ReadDir(f.path)
	if err != nil {
		return f.failed([sha256.Size]byte{}, fmt.Errorf("read configuration: %w", err))
	}
	sum := sumOf(files)
	if sum == f.last {
		return nil
	}
	c, problems := rlsconfig.Parse(files, f.opts)
	if err := problems.Err(); err != nil {
		return f.failed(sum, err)
	}
	for _, p := range problems {
		f.log.Warn("warning about the rate limit configuration", "text", p.String())
	}
	f.last = sum
	f.loads.Add(1)
	f.stale.Store(false)
	f.apply(c)
	f.log.Info("rate limit configuration in use", "folder", f.path, "files", len(files), "limits", len(c.Limited()))
	return nil
}

// failed notes files that cannot be used, so that they are read again only when they change.
func (f *Folder) failed(sum [sha256.Size]byte, err error) error {
	f.last = sum
	f.failures.Add(1)
	f.stale.Store(true)
	return err
}

// sumOf identifies files by their names and content.
func sumOf(files []rlsconfig.File) (sum [sha256.Size]byte) {
	h := sha256.New()
	length := func(n int) { _, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	length(len(files))
	for _, f := range files {
		length(len(f.Name))
		_, _ = h.Write([]byte(f.Name))
		length(len(f.Content))
		_, _ = h.Write(f.Content)
	}
	h.Sum(sum[:0])
	return sum
}

// Run loads the folder again when its files change, until ctx ends.
func (f *Folder) Run(ctx context.Context) error {
	reason := ""
	for pause := lookEvery; run.Sleep(ctx, pause); {
		begin := time.Now()
		err := f.Load()
		switch {
		case err == nil && !f.stale.Load():
			reason = ""
		case err != nil && err.Error() != reason:
			reason = err.Error()
			f.log.Error("failed to load the rate limit configuration, using the earlier one", "folder", f.path, "error", err)
		}
		pause = max(lookEvery, lookPart*time.Since(begin))
	}
	return nil
}

// Loads returns how many configurations came into use, and how many were refused.
func (f *Folder) Loads() (good, refused int64) { return f.loads.Load(), f.failures.Load() }
