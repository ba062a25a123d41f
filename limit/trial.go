package limit

import (
	"slices"
	"strconv"
)

// TrialWhole is the share of a trial that includes all tenants: shares are counted in
// hundredths of a percent.
const TrialWhole = 10_000

// trial is a set of limits that decides for some tenants, instead of the set that has the
// trial.
type trial struct {
	set   *Set
	share int      // of the tenants, 0 to TrialWhole
	ids   []string // of the set that has the trial, without those of the trial
}

// Try returns a set in which next decides for a share of all tenants, from 0 to
// TrialWhole. Next must have been compiled with the ids of s, and have no trial itself.
func (s *Set) Try(next *Set, share int) *Set {
	if !slices.Equal(s.IDs, next.IDs[:min(len(s.IDs), len(next.IDs))]) {
		panic("limit: trial set compiled without the ids of the set")
	}
	tried := *s
	tried.IDs, tried.trial = next.IDs, trial{next, share, s.IDs}
	return &tried
}

// Trial returns the limits on trial, nil for none, and the share of the tenants for which
// they decide.
func (s *Set) Trial() (next *Set, share int) { return s.trial.set, s.trial.share }

// DescribeShare describes for people how large the share of the tenants is.
func DescribeShare(share int) string {
	return strconv.FormatFloat(float64(share)*100/TrialWhole, 'f', -1, 64) + " % of the tenants"
}

// VersionFor returns the version of the limits that decide for a tenant.
func (s *Set) VersionFor(tenant string) string {
	if s.Tries(tenant) {
		return s.trial.set.Version + " (on trial)"
	}
	return s.Version
}

// Tries reports whether limits on trial decide for a tenant.
func (s *Set) Tries(tenant string) bool {
	return s.trial.set != nil && InTrial(tenant, s.trial.share)
}

// WithoutTrial returns the set without the limits on trial.
func (s *Set) WithoutTrial() *Set {
	if s.trial.set == nil {
		return s
	}
	base := *s
	base.IDs, base.trial = s.trial.ids, trial{}
	return &base
}

// InTrial reports whether a tenant is in a share of all tenants, from 0 to TrialWhole. A
// share always has the same tenants, and each larger share includes them. InTrial uses
// the FNV-1a hash of the name, mixed as in MurmurHash3, since the hashes of similar short
// names differ little.
func InTrial(tenant string, share int) bool {
	h := uint64(14695981039346656037)
	for i := range len(tenant) {
		h = (h ^ uint64(tenant[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return int(h%TrialWhole) < share
}

// change is Change for the limits on trial.
func (t *trial) change(part *trial, removed []string) (changed trial, ok bool) {
	if (t.set == nil) != (part.set == nil) || t.share != part.share {
		return changed, false
	}
	if t.set == nil || t.set.Version != part.set.Version {
		return changed, t.set == nil
	}
	next, ok := t.set.Change(part.set, removed, t.set.Version)
	return trial{next, t.share, t.ids}, ok
}
