package limitimport

import (
	"regexp"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// advisedLimit matches a limit that a remark advises.
var advisedLimit = regexp.MustCompile(`- \{id: [^{}]*(\{[^{}]*\})?[^{}]*\}`)

// withAdvised returns a file with the limits that a remark advises, and how many there are. They come first in their
// sections, so that an error names one.
func withAdvised(file string, r Remark) (changed string, n int) {
	for _, text := range advisedLimit.FindAllString(r.Text, -1) {
		section, indent := "shared:\n", "  "
		if strings.Contains(text, "by: [tenant") {
			section, indent = "  default:\n", "    "
		}
		if !strings.Contains(file, section) {
			file += section
		}
		file = strings.Replace(file, section, section+indent+text+"\n", 1)
		n++
	}
	return file, n
}

// TestAdvisedLimits: a limit that a remark advises can be added to the file.
func TestAdvisedLimits(t *testing.T) {
	advised := 0
	eachConfiguration(t, func(path string, r Result, err error) {
		if err != nil {
			return
		}
		for _, remark := range r.Remarks {
			file, n := withAdvised(string(r.File), remark)
			if advised += n; n == 0 {
				continue
			}
			if _, _, err := config.ParseLimits(path, []byte(file), limit.CompileOptions{}); err != nil {
				t.Errorf("%s:%d: %v\n%s", path, remark.Line, err, file)
			}
		}
	})
	if advised < 4 {
		t.Errorf("only %d limits are advised", advised)
	}
}
