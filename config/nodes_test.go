package config

import (
	"slices"
	"strings"
	"testing"
)

// TestDefaultPorts covers URLs without a port: a Sentinel has another one than a Redis.
func TestDefaultPorts(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--redis rediss://a", "a:6379"},
		{"--redis redis://a/3", "a:6379"},
		{"--redis redis://[::1]", "[::1]:6379"},
		{"--redis-sentinel master=m,redis://a", "a:26379"},
		{"--redis-sentinel master=m,redis://a:1", "a:1"},
	} {
		s := loadArgs(t, c.args)
		if got := append(s.Redis.Addrs, s.RedisSentinel.Nodes.Addrs...); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q, want %s", c.args, got, c.want)
		}
	}
}

// TestQuoteHidesURLs checks that no password of a URL in the wrong place is repeated.
func TestQuoteHidesURLs(t *testing.T) {
	for text, want := range map[string]string{
		"redis://:hunter2@h:1": `"redis://..."`, "word": `"word"`, "a b://c": `"a b://..."`,
	} {
		if got := Quote(text); got != want {
			t.Errorf("Quote(%q) is %s, want %s", text, got, want)
		}
	}
	if got := plain("redis://:hunter2@h:1"); got != "redis://..." {
		t.Errorf("a key is quoted as %s", got)
	}
}

func loadArgs(t *testing.T, args string) *Settings {
	t.Helper()
	s, _, rest, err := Load(strings.Fields(args), nil, ReadSettingsFile)
	if err != nil || len(rest) > 0 {
		t.Fatal(args, rest, err)
	}
	return s
}
