package limitimport

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestAdvisedLimits: a limit that a remark advises can be added to the file.
func TestAdvisedLimits(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	advised := 0
	for _, path := range paths {
		read := readers[filepath.Ext(path)]
		if read == nil {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := read(content)
		if err != nil {
			continue
		}
		for _, remark := range r.Remarks {
			_, text, found := strings.Cut(remark.Text, "- {")
			if !found || !strings.HasSuffix(text, "}") {
				continue
			}
			advised++
			text = strings.Replace("  - {"+text+"\n", "rate: N/s", "rate: 1/s", 1)
			file := string(r.File)
			if strings.Contains(text, "by: [tenant") {
				t.Fatalf("%s: a limit of a plan is advised: %s", path, text)
			}
			if _, _, err := config.ParseLimits(path, []byte(file+text), limit.CompileOptions{}); err != nil {
				t.Errorf("%s:%d: %v\n%s%s", path, remark.Line, err, file, text)
			}
		}
	}
	if advised < 6 {
		t.Errorf("only %d limits are advised", advised)
	}
}
