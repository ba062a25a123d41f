package config

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// FuzzSettingsFile looks for files that make the parser panic, and for messages that do
// not have their place in one line.
func FuzzSettingsFile(f *testing.F) {
	for _, m := range mistakes {
		if len(m.file) < 1<<10 {
			f.Add([]byte(m.file))
		}
	}
	f.Add([]byte("privacy:\n  ip_max_ttl: 2m\nredis: [a:1, 'b:2']\n"))
	f.Add([]byte("a: \x00"))
	f.Add([]byte("\"a\\nb\": 1"))
	f.Add([]byte("limits: !\"x\\ny\" z"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("%YAML 9.9\n---\n"))
	place := regexp.MustCompile(`^fuzz\.yaml:([1-9][0-9]*): .`)
	f.Fuzz(func(t *testing.T, content []byte) {
		s, origins, _, err := Load([]string{"--config=fuzz.yaml"}, nil, func(string) ([]byte, error) { return content, nil })
		if err == nil {
			if s.Validate() != nil || len(origins) != len(newTable(s))-2 {
				t.Fatalf("%q gives %+v", content, s)
			}
			return
		}
		// YAML ends lines at carriage returns and three Unicode characters as well.
		ends := bytes.Count(content, []byte("\n")) + bytes.Count(content, []byte("\r")) +
			bytes.Count(content, []byte("\u0085")) + bytes.Count(content, []byte("\u2028")) + bytes.Count(content, []byte("\u2029"))
		for text := range strings.SplitSeq(err.Error(), "\n") {
			m := place.FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("%q: no line in %q", content, text)
			}
			// A file that ends too early has its mistake after its last line.
			if n, err := strconv.Atoi(m[1]); err != nil || n > ends+2 {
				t.Fatalf("%q: %q is behind the end", content, text)
			}
		}
	})
}
