package config

import (
	"strings"
	"testing"
)

// TestOTLPMistakes checks that mistakes in the endpoint get a sentence with the right form, and that a
// password is not repeated.
func TestOTLPMistakes(t *testing.T) {
	for _, row := range []struct{ endpoint, want string }{
		{"127.0.0.1:4318", `"127.0.0.1:4318" is not the URL of a collector; write for example http://127.0.0.1:4318`},
		{"localhost:4318", "is not the URL of a collector"},
		{"grpc://127.0.0.1:4317", "is not the URL of a collector"},
		{"http://", "is not the URL of a collector"},
		{"http://:4318", "is not the URL of a collector"},
		{"http://host:", "is not the URL of a collector"},
		{"http:host", "is not the URL of a collector"},
		{"http://a b", "is not the URL of a collector"},
		{"/v1/traces", "is not the URL of a collector"},
		{"http://host:0", "the port must be a number from 1 to 65535"},
		{"http://host:65536", "the port must be a number from 1 to 65535"},
		{"https://host/v1/traces?key=a", "has more than a host and a path"},
		{"https://host/v1/traces?", "has more than a host and a path"},
		{"https://host/#a", "has more than a host and a path"},
		{"https://ann:hunter2@host", "it must not contain a user or a password: set OTEL_EXPORTER_OTLP_HEADERS in the environment"},
		{"https://ann:hunt%er2@host", "it must not contain a user or a password"},
	} {
		_, _, err := load([]string{"--otlp-endpoint=" + row.endpoint}, nil, "")
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "hunt") {
			t.Errorf("%s: %v, want %s", row.endpoint, err, row.want)
		}
	}
	for _, endpoint := range []string{"http://[::1]:4318", "https://otlp.example", "http://collector:4318/", "https://otlp.example/a/v1/traces"} {
		if s, _, err := load([]string{"--otlp-endpoint=" + endpoint}, nil, ""); err != nil || s.OTLPEndpoint != endpoint {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
