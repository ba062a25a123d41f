package envoy

import (
	"bytes"
	"context"
	"log/slog"
	"sync"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/internal/run"
)

// Resources gives a Service the configuration of an xDS server, and of a file of extensions beside it. It
// keeps the last good one while these have mistakes.
type Resources struct {
	extensions string // the file, or empty
	opts       rlsconfig.Options
	service    *Service
	log        *slog.Logger

	mu      sync.Mutex // guards what follows, and makes configurations come one after the other
	last    [][]byte   // the resources in use, nil before the first
	content []byte     // of the file, as it was read last
	// newer are options with extensions that do not fit the resources in use, or nil.
	newer  *rlsconfig.Options
	reason string // of the failure to read the file that was reported, or empty
}

// NewResources returns the configuration for a service. The error is one of the file.
func NewResources(extensions string, opts rlsconfig.Options, service *Service, log *slog.Logger) (*Resources, error) {
	content, err := rlsconfig.ReadExtensions(extensions)
	if err != nil {
		return nil, err
	}
	opts, err = opts.WithExtensions(extensions, content)
	return &Resources{extensions: extensions, opts: opts, service: service, log: log, content: content}, err
}

// Apply gives the service the configuration of resources. The error has a line for each mistake.
func (r *Resources) Apply(resources [][]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newer != nil && r.apply(resources, *r.newer) == nil {
		r.newer = nil
		return nil
	}
	err := r.apply(resources, r.opts)
	if err != nil {
		r.service.RefuseConfig()
	}
	return err
}

// apply gives the service a configuration, of which it keeps the parts.
func (r *Resources) apply(resources [][]byte, opts rlsconfig.Options) error {
	c, problems := rlsconfig.DecodeXDS(resources, opts)
	if err := problems.Err(); err != nil {
		return err
	}
	r.service.use(c, problems, r.log)
	r.last, r.opts = resources, opts
	return nil
}

// Run applies the file of extensions when it changes, until ctx ends.
func (r *Resources) Run(ctx context.Context) error {
	for r.extensions != "" && run.Sleep(ctx, lookEvery) {
		err := r.look()
		if err == nil {
			r.reason = ""
		} else if err.Error() != r.reason {
			r.reason = err.Error()
			r.log.Error("failed to load the extensions of the rate limit configuration, using the earlier ones", "file", r.extensions, "error", err)
		}
	}
	<-ctx.Done()
	return nil
}

// look reads the file of extensions, and applies it to the resources in use if it has changed.
func (r *Resources) look() error {
	content, err := rlsconfig.ReadExtensions(r.extensions)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes.Equal(content, r.content) {
		return nil
	}
	r.content, r.newer = content, nil
	opts, err := r.opts.WithExtensions(r.extensions, content)
	switch {
	case err == nil && r.last == nil:
		r.opts = opts
	case err == nil:
		if err = r.apply(r.last, opts); err != nil {
			r.newer = &opts // the next resources may be those that the file is for
		}
	}
	if err != nil {
		r.service.RefuseConfig()
	}
	return err
}
