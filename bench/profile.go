package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/limitgate/limitgate/internal/load"
)

// profileSeconds is the duration of a profile.
const profileSeconds = 3

// profiled is a driver of which a profile can be taken.
type profiled interface {
	// profile writes the profile to a file. Without a proxy there is none, and no file.
	profile(ctx context.Context, path string) error
}

// explains reports whether cases that miss a goal include a profile. A quick run has no
// time for that.
func (l *lab) explains() bool { return !l.settings.Quick }

// profileCase takes a profile if it is to be kept, or if the result misses a goal; then
// the result includes the reduced profile.
func (l *lab) profileCase(ctx context.Context, d profiled, r *Result) error {
	explain := l.explains() && r.misses()
	if l.profiles == "" && !explain {
		return nil
	}
	l.say("taking a profile")
	path := l.profilePath()
	if err := d.profile(ctx, path); err != nil || !explain {
		return err
	}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read profile: %w", err)
	}
	defer func() { _ = file.Close() }()
	r.Profile, err = reduceProfile(file)
	return err
}

// misses reports whether a goal is missed.
func (c *Result) misses() bool {
	return slices.ContainsFunc(c.Figures, func(f Figure) bool { return f.Verdict == missed })
}

// profile takes a CPU profile of the proxy under the load of the rounds.
func (d *loadDriver) profile(ctx context.Context, path string) error {
	if d.proxy == nil {
		return nil
	}
	taken := make(chan error, 1)
	go func() {
		taken <- newAdmin(d.proxy, d.tls).profile(ctx, profileSeconds, path)
	}()
	// The load lasts longer than the profile, by a little at both ends.
	_, err := d.generator.Run(ctx, load.Load{Duration: (profileSeconds + 1) * time.Second, Rate: d.rate})
	return errors.Join(err, <-taken)
}

// profilePath is the path of the profile of the running case: in the folder of the
// profiles to be kept, or in the one that is removed at the end.
func (l *lab) profilePath() string {
	return filepath.Join(cmp.Or(l.profiles, l.folder), l.running+".pprof")
}
