package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// otlpSettings are the settings of traces.
func otlpSettings(s *Settings) settings {
	return settings{
		{
			name: "otlp.endpoint", group: groupLog,
			usage: "the collector of traces, by OTLP over http:// (for a sidecar) or https://; empty is off",
			value: optional(otlpEndpoint(&s.OTLPEndpoint), &s.OTLPEndpoint),
		},
	}
}

// errUserInEndpoint is returned for a URL with a user or a password. It does not repeat them.
var errUserInEndpoint = errors.New("it must not contain a user or a password: set OTEL_EXPORTER_OTLP_HEADERS in the environment")

// otlpEndpoint parses the URL of a collector.
func otlpEndpoint(to *string) value {
	return value{arg: "URL", shape: stringOnly, read: func(text string) error {
		u, err := url.Parse(text)
		switch {
		case strings.Contains(text, "@"):
			return errUserInEndpoint
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":"):
			return fmt.Errorf("%s is not the URL of a collector; write for example http://127.0.0.1:4318", Quote(text))
		case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
			return fmt.Errorf("%s has more than a host and a path; write for example http://127.0.0.1:4318/v1/traces", Quote(text))
		}
		if u.Port() != "" {
			if err := checkAddress(u.Host, 1); err != nil {
				return err
			}
		}
		*to = text
		return nil
	}}
}
