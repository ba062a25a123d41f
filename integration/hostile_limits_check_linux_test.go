package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConfinedProcessHasLimits: without the limits the rows of hostile clients would pass
// wrongly.
func TestConfinedProcessHasLimits(t *testing.T) {
	by := confine(t)
	p := serveConfined(t, by, 512, writeLimits(t, hostileLimits))
	of := func(file string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	limits := of("limits")
	if !regexp.MustCompile(`Max open files +512 +512 `).MatchString(limits) {
		t.Errorf("descriptors are not limited:\n%s", limits)
	}
	switch {
	case by.group != nil:
		if group := filepath.Base(by.group.Name()); !strings.Contains(of("cgroup"), group) {
			t.Errorf("the process is not in group %s but in\n%s", group, of("cgroup"))
		}
	case by.uid != 0:
		if !regexp.MustCompile(`Max processes +200 +200 `).MatchString(limits) {
			t.Errorf("tasks are not limited:\n%s", limits)
		}
		if user := fmt.Sprintf("Uid:\t%d\t%d\t", by.uid, by.uid); !strings.Contains(of("status"), user) {
			t.Errorf("the process is not of user %d:\n%s", by.uid, of("status"))
		}
	}
}
