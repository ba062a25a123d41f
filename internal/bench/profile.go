package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/limitgate/limitgate/internal/load"
)

// profileSeconds is how long a profile is taken.
const profileSeconds = 2

// profiled is a driver of which a profile can be taken.
type profiled interface {
	profile(ctx context.Context, path string) error
}

// profile takes a CPU profile of the proxy under the load of the rounds.
func (d *loadDriver) profile(ctx context.Context, path string) error {
	if d.proxy == nil {
		return nil
	}
	taken := make(chan error, 1)
	go func() {
		taken <- download(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", d.proxy.Admin, profileSeconds), path)
	}()
	// The load lasts as long as the profile, and a little at both ends.
	_, err := d.generator.Run(ctx, load.Load{Duration: (profileSeconds + 1) * time.Second, Rate: d.rate})
	return errors.Join(err, <-taken)
}

// download writes what a URL answers to a file.
func download(ctx context.Context, url, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask for profile: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask for profile: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask for profile: %s", response.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	_, err = io.Copy(file, response.Body)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// profilePath is where the profile of the case that runs belongs.
func (l *lab) profilePath() string { return filepath.Join(l.profiles, l.running+".pprof") }
