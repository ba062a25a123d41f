package config

import "errors"

// otlpSettings are the settings of traces.
func otlpSettings(s *Settings) settings {
	return settings{
		{
			name: "otlp.endpoint", group: groupLog,
			usage: "the URL of a collector that gets traces by OTLP over HTTP; empty is off",
			value: optional(otlpEndpoint(&s.OTLPEndpoint), &s.OTLPEndpoint),
		},
	}
}

var collectorURL = receiver{
	kind: "a collector", data: "spans", example: "http://127.0.0.1:4318", // in a cluster, few speak TLS
	secret: "set OTEL_EXPORTER_OTLP_HEADERS in the environment",
}

var errCollectorQuery = errors.New("it has more than a host and a path; write for example http://127.0.0.1:4318/v1/traces")

// otlpEndpoint parses the URL of a collector.
func otlpEndpoint(to *string) value {
	return value{arg: "URL", shape: stringOnly, read: func(text string) error {
		u, err := collectorURL.parse(text)
		switch {
		case err != nil:
			return err
		case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
			return errCollectorQuery
		}
		*to = text
		return nil
	}}
}
