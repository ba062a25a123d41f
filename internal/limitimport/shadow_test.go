package limitimport

import (
	"fmt"
	"slices"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestShadow: the file in shadow mode can be used where the other can, enforces nothing, and has each limit of the other, but for
// one in whose place another stands there.
func TestShadow(t *testing.T) {
	watched := 0
	eachConfiguration(t, func(path string, r Result, err error) {
		if err != nil {
			return
		}
		is, _, err := config.ParseLimits(path, r.File, limit.CompileOptions{})
		shadow, _, shadowErr := config.ParseLimits(path, r.Shadow, limit.CompileOptions{})
		if (err == nil) != (shadowErr == nil) {
			t.Errorf("%s: %v, and in the shadow %v\n%s", path, err, shadowErr, r.Shadow)
		}
		if err != nil || shadowErr != nil {
			return
		}
		for _, l := range shadow.Limits {
			if watched++; l.Mode != limit.ModeShadow {
				t.Errorf("%s: %s has mode %s in the shadow", path, l.ID, l.Mode)
			}
		}
		for _, l := range is.Limits {
			if !isWatchedBy(shadow.Limits, l) {
				t.Errorf("%s: no limit in the shadow is %s, or one in its place\n%s", path, l.ID, r.Shadow)
			}
		}
	})
	if watched < 20 {
		t.Errorf("only %d limits are in the shadow", watched)
	}
}

// isWatchedBy reports whether a limit is one of several, or one of its level, its group and its conditions is that counts.
func isWatchedBy(limits []*limit.Limit, l *limit.Limit) bool {
	place := func(l *limit.Limit) string { return fmt.Sprint(l.DescribeLevel(), l.Group, l.When()) }
	return slices.ContainsFunc(limits, func(o *limit.Limit) bool {
		if o.ID == l.ID {
			return o.Action == l.Action && o.Rate.Text == l.Rate.Text && o.Params.Capacity == l.Params.Capacity
		}
		return place(o) == place(l) && o.Action == limit.ActionLimit
	})
}
