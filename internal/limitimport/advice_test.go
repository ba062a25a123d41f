package limitimport

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestAdvisedLimits: a limit that a remark advises can be added to the file.
func TestAdvisedLimits(t *testing.T) {
	advised := 0
	eachConfiguration(t, func(path string, r Result, err error) {
		if err != nil {
			return
		}
		for _, remark := range r.Remarks {
			_, text, found := strings.Cut(remark.Text, "- {")
			if !found || !strings.HasSuffix(text, "}") {
				continue
			}
			advised++
			text = "  - {" + text + "\n"
			if strings.Contains(text, "by: [tenant") {
				t.Fatalf("%s: a limit of a plan is advised: %s", path, text)
			}
			if _, _, err := config.ParseLimits(path, []byte(string(r.File)+text), limit.CompileOptions{}); err != nil {
				t.Errorf("%s:%d: %v\n%s%s", path, remark.Line, err, r.File, text)
			}
		}
	})
	if advised < 6 {
		t.Errorf("only %d limits are advised", advised)
	}
}
