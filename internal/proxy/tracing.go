package proxy

import (
	"context"
	"crypto/rand"

	"github.com/limitgate/limitgate/internal/tracing"
	"github.com/limitgate/limitgate/metrics"
)

// openTracing returns the tracer of the settings, or nil.
func (p *Proxy) openTracing(ctx context.Context) (*tracing.Tracer, error) {
	if p.settings.OTLPEndpoint == "" {
		return nil, nil
	}
	t, err := tracing.New(ctx, tracing.Options{Endpoint: p.settings.OTLPEndpoint, Version: p.version, Instance: rand.Text(), Log: p.log})
	if err != nil {
		return nil, err
	}
	metrics.LabelledCounter(p.metrics, "limitgate_trace_spans_total", "Spans of traced requests, by what became of them.", "outcome", map[string]func() int64{
		"exported": t.Exported, "failed": t.Failed, "dropped": t.Dropped,
	})
	return t, nil
}
