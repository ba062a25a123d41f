package rlsenv

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/envoy.md")

// TestPage checks that docs/envoy.md has the table of the variables.
func TestPage(t *testing.T) {
	const path, begin, end = "../../docs/envoy.md", "<!-- Written by `go test ./internal/rlsenv -update` -->\n", "<!-- The end of that. -->"
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+Markdown()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != Markdown() {
		t.Errorf("%s has another table: run go test ./internal/rlsenv -update", path)
	}
}
