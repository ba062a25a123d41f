package limitimport

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// printed returns what nginx -T prints of a main file that includes another one with content.
func printed(content string) (text string, before int) {
	main := "# configuration file /etc/nginx/nginx.conf:\ninclude whole/*.conf;\n\n# configuration file /etc/nginx/whole/all.conf:\n"
	return main + content, strings.Count(main, "\n")
}

// noPattern matches the remark on an include of a pattern, which includes nothing in the output of nginx -T.
var noPattern = regexp.MustCompile(`(?m)^# line \d+: \S*\*\S* is not read: .*\n`)

// TestNginxFiles: a configuration means the same in an included file.
func TestNginxFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.conf")
	if err != nil || len(paths) < 20 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if beginOfFile.Match(content) {
			continue
		}
		text, before := printed(string(content))
		r, err := Nginx([]byte(text))
		shifted, wantErr := Nginx([]byte(strings.Repeat("\n", before) + string(content)))
		got, want := describe(r, err), describe(shifted, wantErr)
		if want = noPattern.ReplaceAllString(want, ""); got != want {
			t.Errorf("%s, got\n%s\nwant\n%s", path, got, want)
		}
	}
}

// TestNginxIncludesBounded: a few short files that include each other often do not become a long configuration.
func TestNginxIncludesBounded(t *testing.T) {
	var b strings.Builder
	for i := range 9 {
		fmt.Fprintf(&b, "# configuration file /n/%d:\n%s\n", i, strings.Repeat(fmt.Sprintf("include %d;", i+1), 100))
	}
	b.WriteString("# configuration file /n/9:\nlimit_req zone=a;\n")
	if _, err := Nginx([]byte(b.String())); err == nil || !strings.Contains(err.Error(), errIncludedWords.Error()) {
		t.Errorf("error %v", err)
	}
}
