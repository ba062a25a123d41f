package layering

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestComplianceNamesTests checks that the tests that docs/compliance.md names exist.
func TestComplianceNamesTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/compliance.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(content, -1) {
			declared[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 20 {
		t.Errorf("%d tests are named", len(named))
	}
	for _, m := range named {
		if !declared[m[1]] {
			t.Errorf("%s does not exist", m[1])
		}
	}
}
