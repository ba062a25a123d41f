package rlsenv

import (
	"net/url"
	"path"
	"strings"
)

const (
	collectorName = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesName    = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	protocolName  = "TRACING_EXPORTER_PROTOCOL"
)

// defaultCollector is the collector of OpenTelemetry's exporter over HTTP without a variable.
const defaultCollector = "https://localhost:4318"

// traces sets the collector of spans.
func (d *draft) traces(p *problems) {
	if !d.tracing {
		return
	}
	switch d.tracesProtocol {
	case "", "http":
	case "grpc":
		p.note(protocolName, "spans leave by OTLP over HTTP only, so none are exported: set it to http, and the endpoint to the HTTP port of the collector, usually 4318")
		return
	default:
		p.refuse(protocolName, "it is not http or grpc; write for example http", "TRACING_ENABLED")
		return
	}
	name, text := collectorName, d.collector
	if d.tracesTarget != "" {
		name, text = tracesName, d.tracesTarget
	}
	if text == "" {
		text = defaultCollector
	}
	u, err := url.Parse(text)
	switch {
	case strings.Contains(text, "@"):
		p.refuse(name, "it must not contain a user or a password: set OTEL_EXPORTER_OTLP_HEADERS")
		return
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || strings.ContainsAny(text, "?#"):
		p.refuse(name, "it is not the URL of a collector; write for example http://127.0.0.1:4318")
		return
	case name == collectorName:
		u.Path = path.Join("/", u.Path, "v1/traces")
	}
	d.OTLPEndpoint = u.String()
}
