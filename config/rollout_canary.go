package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// ErrNoTrial is returned when a trial of limits is to be ended and there is none.
var ErrNoTrial = errors.New("no limits are on trial")

// canary tries a changed file on some of the tenants first.
type canary struct {
	share     int // of the tenants; 0 applies each change to all of them
	threshold int // immutable while it is shared
	// held is the version that was taken back, and the reason: it is not tried again
	// until the file changes.
	held string
	why  string
}

// Canary makes later changes of the limits apply to a share of the tenants until Promote
// or TakeBack. Both numbers are hundredths of a percent; threshold is the value that
// Threshold returns.
func (s *LimitsSource) Canary(share, threshold int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.canary.share, s.canary.threshold = share, threshold
}

// Threshold returns how much of all requests, 0 to 1, limits on trial may deny in
// addition to the limits before.
func (s *LimitsSource) Threshold() float64 { return float64(s.canary.threshold) / 10_000 }

// ids returns the limit ids with which a changed file is compiled, see
// limit.CompileOptions.IDs.
func (c *canary) ids(set *limit.Set) []string {
	if c.share == 0 {
		return nil
	}
	return set.WithoutTrial().IDs
}

// next returns the set to use after a file was read while set is in use.
func (c *canary) next(set, read *limit.Set) *limit.Set {
	trial, _ := set.Trial()
	switch {
	case c.share == 0:
		return read
	case read.Version == set.Version: // the file is unchanged again
		c.held, c.why = "", ""
		return set.WithoutTrial()
	case read.Version == c.held, trial != nil && read.Version == trial.Version:
		return set
	default:
		c.held, c.why = "", ""
		return set.WithoutTrial().Try(read, c.share)
	}
}

// describe adds the state of a trial to a status.
func (c *canary) describe(set *limit.Set, st *LimitsStatus) {
	if trial, share := set.Trial(); trial != nil {
		st.Trial = fmt.Sprintf("version %s, on %s", trial.Version, limit.DescribeShare(share))
	}
	if c.held != "" && st.Error == "" {
		st.Error = c.heldBack() + "; restore the file before, as a proxy that starts takes this one for all tenants"
	}
}

// heldBack describes the version that was taken back.
func (c *canary) heldBack() string {
	return fmt.Sprintf("version %s was taken back, and waits for another file: %s", c.held, c.why)
}

// TakeBack ends the trial of limits of a version, or of any version if it is empty, and
// does not try them again until the file changes. Why is a sentence for people.
func (s *LimitsSource) TakeBack(version, why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	trial, _ := s.set.Trial()
	if trial == nil || version != "" && version != trial.Version {
		return ErrNoTrial
	}
	s.canary.held, s.canary.why = trial.Version, why
	s.use(s.set.WithoutTrial())
	return nil
}

// noTrial is ErrNoTrial, with the version that was taken back.
func (s *LimitsSource) noTrial() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.canary.held == "" {
		return ErrNoTrial
	}
	return fmt.Errorf("%w: %s", ErrNoTrial, s.canary.heldBack())
}

// Promote applies the limits on trial to all tenants, with the present content of the
// file.
func (s *LimitsSource) Promote() error {
	if trial, _ := s.Set().Trial(); trial == nil { // avoids reading the file without need
		return s.noTrial()
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	next, _, err := s.parse(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	trial, _ := s.set.Trial()
	if trial == nil {
		return ErrNoTrial
	}
	if err != nil {
		return err
	}
	if next.Version != trial.Version {
		return fmt.Errorf("promote limits: the file is version %s now, and %s is on trial: wait until it is read, or try again", next.Version, trial.Version)
	}
	s.loaded = time.Now()
	s.use(next)
	return nil
}
