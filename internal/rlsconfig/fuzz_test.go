package rlsconfig

import (
	"strings"
	"testing"
)

// FuzzParse looks for files that make Parse panic, and for problems that are not a line with a place.
func FuzzParse(f *testing.F) {
	for _, m := range mistakes {
		if len(m.file) < 1<<10 {
			f.Add([]byte(m.file), false)
		}
	}
	files, err := ReadDir("testdata/shop")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(file.Content, true)
	}
	f.Fuzz(func(t *testing.T, content []byte, merge bool) {
		c, problems := Parse([]File{{"a", content}, {"b", content}}, Options{MergeDomains: merge})
		checkResult(t, c, problems)
		c, problems = Parse([]File{{"a", content}}, Options{})
		checkResult(t, c, problems)
	})
}

// FuzzDecodeXDS looks for the same among resources.
func FuzzDecodeXDS(f *testing.F) {
	f.Add(message(1, "r", 2, "d", 3, message(1, "k", 2, "v*", 3, message(1, 2, 2, 5, 4, "n", 5, message(1, "m")), 5, 1, 6, 1, 7, 1)))
	f.Add(message(2, "d", 3, message(1, "k", 4, message(1, "k", 3, message(3, 1)), 8, message(1, message(1, "m", 2, message(3, "v"))))))
	f.Fuzz(func(t *testing.T, resource []byte) {
		c, problems := DecodeXDS([][]byte{resource}, Options{})
		checkResult(t, c, problems)
	})
}

// checkResult checks what holds for every result: there is a Config exactly if there are no mistakes,
// each problem and each line is one line, and each rule has a counter.
func checkResult(t *testing.T, c *Config, problems Problems) {
	t.Helper()
	if (c == nil) != (problems.Err() != nil) {
		t.Fatalf("the config is %v, the problems are %v", c, problems)
	}
	for _, p := range problems {
		if text := p.String(); strings.ContainsAny(text, "\n\r") || p.Text == "" || p.File == "" {
			t.Errorf("the problem %q is no line", text)
		}
	}
	if c == nil {
		return
	}
	if lines := c.Lines(); len(lines) != len(c.limited) || strings.ContainsAny(strings.Join(lines, ""), "\n\r") {
		t.Errorf("the lines are %q", lines)
	}
	names := map[string]*Rule{}
	for _, rule := range c.limited {
		entries := make([]Entry, len(rule.steps))
		name := string(rule.AppendCounter(nil, entries, nil))
		if other := names[name]; other != nil {
			t.Errorf("%+v and %+v share the counter %s", other, rule, name)
		}
		names[name] = rule
	}
}
