package config

import (
	"strings"
	"testing"
)

// TestOTLPMistakes checks that mistakes in the endpoint get a sentence with the right form, and that a
// password is not repeated.
func TestOTLPMistakes(t *testing.T) {
	const noURL, user = "it is not the URL of a collector; write for example http://127.0.0.1:4318", "a URL of spans must not contain a user or a password: set OTEL_EXPORTER_OTLP_HEADERS in the environment"
	const more = "it has more than a host and a path; write for example http://127.0.0.1:4318/v1/traces"
	for _, row := range []struct{ endpoint, want string }{
		{"127.0.0.1:4318", noURL},
		{"localhost:4318", noURL},
		{"grpc://127.0.0.1:4317", noURL},
		{"http://", noURL},
		{"http://:4318", noURL},
		{"http://127.0.0.1:", noURL},
		{"http:host", noURL},
		{"http://a b", noURL},
		{"/v1/traces", noURL},
		{"http://127.0.0.1:hunter2", noURL},
		{"http://127.0.0.1:0", `"0" is not a port; it must be a number from 1 to 65535`},
		{"https://host:65536", `"65536" is not a port`},
		{"https://host/v1/traces?key=hunter2", more},
		{"https://host/v1/traces?", more},
		{"https://host/#a", more},
		{"https://ann:hunter2@host", user},
		{"https://ann:hunt%er2@host", user},
		{"http://127.0.0.1@host/", user},
	} {
		_, _, err := load([]string{"--otlp-endpoint=" + row.endpoint}, nil, "")
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hunt") {
			t.Errorf("%s: %v, want %s", row.endpoint, err, row.want)
		}
	}
	for _, endpoint := range []string{"http://[::1]:4318", "http://LocalHost", "http://127.0.0.2:65535/a", "http://collector:4318/", "https://otlp.example", "https://collector:1/", "https://otlp.example/a@b/v1/traces"} {
		if s, _, err := load([]string{"--otlp-endpoint=" + endpoint}, nil, ""); err != nil || s.OTLPEndpoint != endpoint {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
