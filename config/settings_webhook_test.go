package config

import (
	"strings"
	"testing"
)

// TestWebhookURL checks which URLs may receive events.
func TestWebhookURL(t *testing.T) {
	const noURL, user = "it is not the URL of an endpoint; write for example https://hooks.example.com/limits", "must not contain a user or a password: the secret of --webhook-secret-file signs them"
	const insecure = "events would cross the network unencrypted; write https, or the http URL of this machine"
	for url, want := range map[string]string{
		"https://hooks.example.com":                   "",
		"https://hooks.example.com:8443/a/b?c=d":      "",
		"HTTPS://[2001:db8::1]/":                      "",
		"http://127.0.0.1:8080/limits":                "",
		"http://127.9.9.9":                            "",
		"http://[::1]:8080/":                          "",
		"http://[::ffff:127.0.0.1]/":                  "",
		"http://LocalHost/":                           "",
		"":                                            "",
		"http://hooks.example.com/hunter2":            insecure,
		"http://10.0.0.1:8080/":                       insecure,
		"http://0.0.0.0/":                             insecure,
		"http://127.0.0.1.example.com/":               insecure,
		"http://localhost.example.com/":               insecure,
		"https://u:hunter2@hooks.example.com/":        user,
		"https://hunter2@hooks.example.com/":          user,
		"https://u:hunter%2@hooks.example.com/":       user,
		"https://hooks.example.com:":                  noURL,
		"http://127.0.0.1@hooks.example.com/":         user,
		"https://hooks.example.com:0/":                `"0" is not a port; it must be a number from 1 to 65535`,
		"https://hooks.example.com:65536/":            `"65536" is not a port`,
		"https://hooks.example.com:hunter2/":          noURL,
		"https://":                                    noURL,
		"https:///limits":                             noURL,
		"https://:443/limits":                         noURL,
		"https:hooks.example.com":                     noURL,
		"hooks.example.com":                           noURL,
		"hooks.example.com:443/limits":                noURL,
		"/limits":                                     noURL,
		"ftp://hooks.example.com/":                    noURL,
		"file:///etc/passwd":                          noURL,
		"https://a b/":                                noURL,
		"https://hooks.example.com/\x00":              noURL,
		"https://hooks.example.com/\r\nX-Hunter2: 1/": noURL,
	} {
		args := []string{"--webhook-url=" + url}
		if url != "" {
			args = append(args, "--webhook-secret-file=f")
		}
		s, _, err := load(args, nil, "")
		switch {
		case want == "" && (err != nil || s.WebhookURL != url):
			t.Errorf("%q: %v", url, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", url, err, want)
		case err != nil && strings.Contains(strings.ToLower(err.Error()), "hunter2"):
			t.Errorf("%q: the error repeats it: %v", url, err)
		}
	}
}
