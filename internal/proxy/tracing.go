package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"

	"github.com/limitgate/limitgate/internal/tlsfiles"
	"github.com/limitgate/limitgate/internal/tracing"
	"github.com/limitgate/limitgate/metrics"
)

// openTracing returns the tracer of the settings, or nil.
func (p *Proxy) openTracing(ctx context.Context) (*tracing.Tracer, error) {
	if p.settings.OTLPEndpoint == "" {
		return nil, nil
	}
	files, err := tlsfiles.NewClient(tlsfiles.ClientOptions{CA: otlpVariable("CERTIFICATE"), Cert: otlpVariable("CLIENT_CERTIFICATE"), Key: otlpVariable("CLIENT_KEY")})
	if err != nil {
		return nil, fmt.Errorf("read the certificates of OTEL_EXPORTER_OTLP_*: %w", err)
	}
	encrypted, err := files.Config("") // the host is that of the URL
	if err != nil {
		return nil, err
	}
	t, err := tracing.New(ctx, tracing.Options{Endpoint: p.settings.OTLPEndpoint, TLS: encrypted, Version: p.version, Instance: rand.Text(), Log: p.log})
	if err != nil {
		return nil, err
	}
	metrics.LabelledCounter(p.metrics, "limitgate_trace_spans_total", "Spans of traced requests, by what became of them.", "outcome", map[string]func() int64{
		"exported": t.Exported, "failed": t.Failed, "dropped": t.Dropped,
	})
	return t, nil
}

// otlpVariable returns a variable of OpenTelemetry about the collector, that for traces first.
func otlpVariable(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}
