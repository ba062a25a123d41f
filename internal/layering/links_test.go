package layering

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	pageAnchor  = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksOfPages checks that links between the pages lead to a file, and to a heading in it.
func TestLinksOfPages(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." || entry.Name() == "node_modules" || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		content, err := os.ReadFile(path)
		for _, m := range pageLink.FindAllStringSubmatch(string(content), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			found++
			if problem := brokenLink(path, m[1]); problem != "" {
				t.Errorf("%s: link %s: %s", path, m[1], problem)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("%d links between pages", found)
	}
}

// brokenLink returns what is wrong with a link of a page, or "".
func brokenLink(page, link string) string {
	name, anchor, _ := strings.Cut(link, "#")
	target := page
	if name != "" {
		target = filepath.Join(filepath.Dir(page), name)
	}
	if _, err := os.Stat(target); err != nil {
		return "there is no such file"
	}
	if anchor == "" || !strings.HasSuffix(target, ".md") {
		return ""
	}
	content, err := os.ReadFile(target)
	if err != nil {
		return err.Error()
	}
	for _, m := range pageHeading.FindAllStringSubmatch(string(content), -1) {
		if strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return ""
		}
	}
	for _, m := range pageAnchor.FindAllStringSubmatch(string(content), -1) {
		if m[1] == anchor {
			return ""
		}
	}
	return "the page has no such heading"
}
