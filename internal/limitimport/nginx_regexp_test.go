package limitimport

import "testing"

// TestMayMatch: a regular expression may match no path that begins with other letters than it does.
func TestMayMatch(t *testing.T) {
	for _, row := range []struct {
		modifier, regexp, prefix string
		want                     bool
	}{
		{"~", "^/(x|y)", "/api", false},
		{"~", "^/(x|y)", "/x", true},
		{"~", "^/(x|y)", "/", true},
		{"~", "^/(?:api|y)/", "/api/", true},
		{"~", "^/(x|y)?api", "/api", true},
		{"~", "^/(x|y)*", "/api", true},
		{"~", "^/(x|)", "/api", true},
		{"~", "^/(x.|y)", "/api", true},
		{"~", "^/a?(x|y)", "/y", true},
		{"~", "^/x|^/api", "/api", true},
		{"~*", "^/(API|x)", "/api", true},
		{"~", "^/(API|x)", "/api", false},
		{"~", "[.]php$", "/api", true},
		{"~", "^/(a(b|c))", "/d", true},
	} {
		if got := (location{modifier: row.modifier, path: row.regexp}).mayMatch()(row.prefix); got != row.want {
			t.Errorf("%s %s, %s: %v", row.modifier, row.regexp, row.prefix, got)
		}
	}
}
