package config

import (
	"slices"
	"strings"
	"testing"
)

// TestSettingsWarnings: settings that are valid, and seldom meant, have a warning, and others none.
func TestSettingsWarnings(t *testing.T) {
	for _, row := range []struct {
		args, environ []string
		want          []string // parts of the warnings
	}{
		{[]string{"--users", ""}, nil, []string{"flag --users: it is empty, so that clients need no password"}},
		{nil, []string{"LIMITGATE_LIMITS="}, []string{"env LIMITGATE_LIMITS: it is empty, so that the built-in sample of limits decides"}},
		{[]string{"--limits", "", "--redis", "a:1"}, nil, nil},
		{[]string{"--tls-cert", "", "--tls-key", "", "--tls-client-ca", "", "--jwt-jwks", ""}, nil, []string{"connections are not encrypted", "clients need no certificate", "no token of JWT is accepted"}},
		{[]string{"--instances", "3"}, nil, []string{"--instances 3: without --redis the store is the memory of this process"}},
		{[]string{"--instances", "3", "--redis", "a:1"}, nil, nil},
		{[]string{"--instances", "1"}, nil, nil},
		{[]string{"--http", "127.0.0.1:8080", "--http-trusted-cidrs", "10.0.0.0/8,0.0.0.0/0,::/0"}, nil, []string{"--http-trusted-cidrs 0.0.0.0/0: every address is one of a proxy", "--http-trusted-cidrs ::/0: "}},
		{[]string{"--http", "127.0.0.1:8080", "--http-dim-headers", "X-User-Id=user,org=X-Org"}, nil, []string{"--http-dim-headers X-User-Id=user: the dimension stands in front: write user=X-User-Id if X-User-Id is the header"}},
		{[]string{"--limits-canary-threshold", "50%"}, nil, []string{"--limits-canary-threshold has no effect without --limits-canary"}},
		{[]string{"--limits", "x", "--limits-canary", "10%", "--limits-canary-threshold", "50%"}, nil, nil},
		{[]string{"--privacy-ipv6-prefix", "24", "--privacy-ipv4-prefix", "16"}, nil, []string{"--privacy-ipv6-prefix 24: all clients of a network of /24"}},
		{[]string{"--privacy-ipv4-prefix", "8"}, nil, []string{"--privacy-ipv4-prefix 8: all clients of a network of /8"}},
	} {
		s, _, _, err := Load(row.args, row.environ, nil)
		if err != nil || !slices.EqualFunc(s.Warnings, row.want, strings.Contains) {
			t.Errorf("%v %v: %v, %+v", row.args, row.environ, err, s)
		}
	}
}

// TestReadPassword: a file that looks like a password in an editor, and has more, is refused.
func TestReadPassword(t *testing.T) {
	for content, want := range map[string]string{
		"hunter22\n":       "",
		"hunter 22":        "",
		"hunter22\r\n":     "ends with a carriage return",
		"hunter22\nmore\n": "has several lines",
		"\n":               "is empty",
	} {
		password, err := ReadPassword(writeSecret(t, content, 0o600))
		if err == nil && want == "" && password == strings.TrimSuffix(content, "\n") {
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%q: %q, %v", content, password, err)
		}
	}
}
