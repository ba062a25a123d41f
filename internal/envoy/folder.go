package envoy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
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

// Folder gives a Service the configuration of a folder, in the files of envoyproxy/ratelimit. It keeps
// the last good one while these have mistakes.
type Folder struct {
	path       string
	extensions string // the file of extensions, or empty
	opts       rlsconfig.Options
	service    *Service
	log        *slog.Logger
	readDir    func(path string) ([]rlsconfig.File, error)
	last       [sha256.Size]byte      // of the files that were read
	reason     atomic.Pointer[string] // of the failure that was reported, nil after a success
	loaded     atomic.Bool
}

// NewFolder returns the configuration of a folder, and of a file of extensions unless its name is empty, for
// a service.
func NewFolder(path, extensions string, opts rlsconfig.Options, service *Service, log *slog.Logger) *Folder {
	return &Folder{path: path, extensions: extensions, opts: opts, service: service, log: log, readDir: rlsconfig.ReadDir}
}

// Load reads the folder and gives its configuration to the service if it has changed. The error has a
// line for each mistake; files with mistakes are not parsed again before they change. It must not be
// called beside Run.
func (f *Folder) Load() error {
	files, content, sum, err := f.read()
	if err != nil {
		f.last = [sha256.Size]byte{}
		return err
	}
	if sum == f.last {
		return nil
	}
	f.last = sum
	if len(files) == 0 {
		return fmt.Errorf("read configuration: %s has no files: write the limits of a domain into one", f.path)
	}
	opts, err := f.opts.WithExtensions(f.extensions, content)
	if err != nil {
		return err
	}
	c, problems := rlsconfig.Parse(files, opts)
	if err := problems.Err(); err != nil {
		return err
	}
	f.service.use(c, problems, f.log)
	f.reason.Store(nil)
	f.loaded.Store(true)
	f.log.Info("rate limit configuration in use", "folder", f.path, "files", len(files), "limits", len(c.Limited()))
	return nil
}

// maxReadings bounds how often files are read that change meanwhile.
const maxReadings = 5

var errChanging = errors.New("read configuration: the files change while they are read")

// read returns the files, the content of the file of extensions, and their sum. Files that have changed are
// read until two readings are equal: one beside a swap of links may have files of two configurations.
func (f *Folder) read() (files []rlsconfig.File, extensions []byte, sum [sha256.Size]byte, err error) {
	var before [sha256.Size]byte
	for range maxReadings {
		files, err = f.readDir(f.path)
		if err != nil {
			return nil, nil, sum, fmt.Errorf("read configuration: %w", err)
		}
		extensions, err = rlsconfig.ReadExtensions(f.extensions)
		if err != nil {
			return nil, nil, sum, err
		}
		sum = sumOf(append(files[:len(files):len(files)], rlsconfig.File{Content: extensions}))
		if sum == f.last || sum == before {
			return files, extensions, sum, nil
		}
		before = sum
	}
	return nil, nil, sum, errChanging
}

// Loaded reports whether the service got a configuration. It may be called at any time.
func (f *Folder) Loaded() bool { return f.loaded.Load() }

// Problem returns why the folder is not in use as it is, or "". It may be called at any time.
func (f *Folder) Problem() string {
	if reason := f.reason.Load(); reason != nil {
		return *reason
	}
	return ""
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
	for pause := lookEvery; run.Sleep(ctx, pause); {
		begin := time.Now()
		if err := f.Load(); err != nil {
			f.Failed(err)
		}
		pause = max(lookEvery, lookPart*time.Since(begin))
	}
	return nil
}

// Failed reports an error of Load, once.
func (f *Folder) Failed(err error) {
	reason := err.Error()
	if before := f.reason.Load(); before != nil && *before == reason {
		return
	}
	f.reason.Store(&reason)
	f.service.RefuseConfig()
	f.log.Error("failed to load the rate limit configuration, using the earlier one", "folder", f.path, "error", err)
}
