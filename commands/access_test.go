package commands

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/users"
)

// TestDocumentedGroups compares the groups of docs/users.md with the rights that commands need.
func TestDocumentedGroups(t *testing.T) {
	page, err := os.ReadFile("../docs/users.md")
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(Options{})
	for name, group := range map[string]users.Groups{"check": users.Check, "read": users.Read, "dialects": users.Dialects, "admin": users.Admin} {
		line := regexp.MustCompile("(?m)^\\| `@" + name + "` \\|(.*)$").FindStringSubmatch(string(page))
		if line == nil {
			t.Fatalf("the page has no group %s", name)
		}
		var documented []string
		for _, m := range regexp.MustCompile("`([A-Z][A-Z. ]+)`").FindAllStringSubmatch(line[1], -1) {
			documented = append(documented, strings.ReplaceAll(strings.ToLower(m[1]), " ", "|"))
		}
		actual := h.names(func(c *command) bool { return c.access.groups&group != 0 })
		for _, c := range documented {
			if !slices.Contains(actual, c) {
				t.Errorf("%s is not in @%s", c, name)
			}
		}
		for _, c := range actual {
			if name != "admin" && !slices.Contains(documented, c) { // of which the page names some
				t.Errorf("%s is in @%s, and the page does not say so", c, name)
			}
		}
	}
}

// TestEveryCommandHasItsRights: a command that is new needs a row of accessTable, or is for
// everybody on purpose.
func TestEveryCommandHasItsRights(t *testing.T) {
	for _, c := range NewHandler(Options{}).sorted() {
		if c.group == groupLimit && c.access.groups == 0 && c.name != "rl.help" {
			t.Errorf("every user may send %s", c.name)
		}
		for _, sub := range append([]*command{c}, c.sortedSubs()...) {
			if slices.Contains(sub.flags, "admin") && (sub.access.groups != users.Admin) {
				t.Errorf("%s needs no administrator", sub.full)
			}
		}
	}
	for name := range accessTable {
		if byFullName(newTable(), []byte(name)) == nil {
			t.Errorf("%s has rights and does not exist", name)
		}
	}
}
