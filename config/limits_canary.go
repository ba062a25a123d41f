package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// ErrNoTrial is returned to who ends a trial of limits when there is none.
var ErrNoTrial = errors.New("no limits are on trial")

// canary has a changed file tried on some of the tenants first.
type canary struct {
	share     int // of the tenants, 0 for none: then each change is for all of them
	threshold int // never changes while others look at it
	// held is the version that was taken back, and why: until another file comes it is
	// not tried again.
	held string
	why  string
}

// Canary has later changes of the limits tried on a share of the tenants until Promote or
// TakeBack. Both numbers are hundredths of a percent; threshold is what Threshold returns.
func (s *LimitsSource) Canary(share, threshold int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.canary.share, s.canary.threshold = share, threshold
}

// Threshold is by how much of all requests, 0 to 1, limits that are tried may deny more than
// those before.
func (s *LimitsSource) Threshold() float64 { return float64(s.canary.threshold) / 10_000 }

// ids returns the ids that a changed file has to know.
func (c *canary) ids(set *limit.Set) []string {
	if c.share == 0 {
		return nil
	}
	return set.WithoutTrial().IDs
}

// next returns what a file that was read makes of the set in use.
func (c *canary) next(set, read *limit.Set) *limit.Set {
	trial, _ := set.Trial()
	switch {
	case c.share == 0:
		return read
	case read.Version == set.Version: // the file is again what it was
		c.held, c.why = "", ""
		return set.WithoutTrial()
	case read.Version == c.held, trial != nil && read.Version == trial.Version:
		return set
	default:
		c.held, c.why = "", ""
		return set.WithoutTrial().Try(read, c.share)
	}
}

// describe tells of a trial.
func (c *canary) describe(set *limit.Set, st *LimitsStatus) {
	if trial, share := set.Trial(); trial != nil {
		st.Trial = fmt.Sprintf("version %s, on %s", trial.Version, limit.DescribeShare(share))
	}
	if c.held != "" && st.Error == "" {
		st.Error = fmt.Sprintf("version %s was taken back, and waits for another file: %s", c.held, c.why)
	}
}

// TakeBack ends the trial of limits of a version, whatever it is if that is empty, and
// keeps them from being tried again until the file changes. Why is a sentence for people.
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

// Promote has the limits that are tried decide for all tenants, as the file says them now.
func (s *LimitsSource) Promote() error {
	if trial, _ := s.Set().Trial(); trial == nil { // and nothing is read for nothing
		return ErrNoTrial
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
