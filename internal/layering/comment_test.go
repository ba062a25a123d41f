package layering

import (
	"fmt"
	"strings"
	"testing"
)

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	for _, p := range listPackages(t) {
		if problem := checkPackageComment(p.name(), p.sources(t)); problem != "" {
			t.Error(problem)
		}
	}
}

// checkPackageComment returns a problem with the package comment, or nothing. The comment
// belongs into non-test code, if there is some.
func checkPackageComment(name string, sources []source) string {
	var inCode, inTests []string
	hasCode := false
	for _, s := range sources {
		hasCode = hasCode || !s.isTest
		if s.Doc.Text() == "" {
			continue
		}
		if s.isTest {
			inTests = append(inTests, s.name)
		} else {
			inCode = append(inCode, s.name)
		}
	}
	commented := inCode
	if !hasCode {
		commented = inTests
	}
	if len(commented) == 1 {
		return ""
	}
	return fmt.Sprintf("%s has %d package comments, it should have one: %s",
		name, len(commented), strings.Join(commented, " "))
}

func TestCheckPackageCommentCountsThem(t *testing.T) {
	const with, without = "// Package a is one.\npackage a\n", "//go:build linux\n\npackage a\n"
	for name, test := range map[string]struct {
		files map[string]string
		good  bool
	}{
		"one":                 {map[string]string{"a.go": with, "b.go": without}, true},
		"none":                {map[string]string{"a.go": without}, false},
		"two":                 {map[string]string{"a.go": with, "b.go": with}, false},
		"only in a test":      {map[string]string{"a.go": without, "a_test.go": with}, false},
		"also in a test":      {map[string]string{"a.go": with, "a_test.go": with}, true},
		"nothing but tests":   {map[string]string{"a_test.go": with, "b_test.go": without}, true},
		"tests without a one": {map[string]string{"a_test.go": without}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var sources []source
			for file, text := range test.files {
				sources = append(sources, parseText(t, file, text))
			}
			if got := checkPackageComment("a", sources); (got == "") != test.good {
				t.Errorf("got %q, want good = %v", got, test.good)
			}
		})
	}
}
