package limitimport

import (
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestShadow: the file in shadow mode can be used where the other can, enforces nothing, and has as many limits in the
// shadow as the other enforces.
func TestShadow(t *testing.T) {
	watched := 0
	eachConfiguration(t, func(path string, r Result, err error) {
		if err != nil {
			return
		}
		modes := func(file []byte) (of map[limit.Mode]int, err error) {
			set, _, err := config.ParseLimits(path, file, limit.CompileOptions{})
			if err != nil {
				return nil, err
			}
			of = map[limit.Mode]int{}
			for _, l := range set.Limits {
				of[l.Mode]++
			}
			return of, nil
		}
		is, err := modes(r.File)
		shadow, shadowErr := modes(r.Shadow)
		if (err == nil) != (shadowErr == nil) || shadow[limit.ModeEnforce] > 0 || is[limit.ModeEnforce] > 0 && shadow[limit.ModeShadow] != is[limit.ModeEnforce] {
			t.Errorf("%s: %v, %v, and in the shadow %v, %v\n%s", path, is, err, shadow, shadowErr, r.Shadow)
		}
		watched += shadow[limit.ModeShadow]
	})
	if watched < 20 {
		t.Errorf("only %d limits are in the shadow", watched)
	}
}
