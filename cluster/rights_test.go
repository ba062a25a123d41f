package cluster

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestRightsNameTheScriptsCommands fails if a script uses a command that is not in Rights,
// even if the script works without it.
func TestRightsNameTheScriptsCommands(t *testing.T) {
	known, err := client(t, redistest.SharedNode(t).Addr).Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, word := range regexp.MustCompile(`'[A-Z]+'`).FindAllString(joined(preludeLua)+heartbeatLua, -1) {
		command := strings.ToLower(strings.Trim(word, "'"))
		if known[command] == nil {
			continue
		}
		if used++; !slices.Contains(strings.Fields(Rights), "+"+command) {
			t.Errorf("a script uses %s, which is not among the rights", word)
		}
	}
	if used < 8 {
		t.Errorf("found %d commands", used)
	}
}

// TestRightsOfTheDocs: docs/redis-acl.md has the rights.
func TestRightsOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/redis-acl.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\nuser limitgate on #SHA256-OF-THE-PASSWORD "+Rights+"\n") {
		t.Errorf("the page lacks the line of a user with %s", Rights)
	}
}
