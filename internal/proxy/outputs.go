package proxy

import (
	"context"
	"io"

	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/metrics"
)

// openOutputs makes the counters of decisions, and opens the receivers of metrics, events and spans of the
// settings. The limiter, which is made after them, passes its decisions to all of them.
func (p *Proxy) openOutputs(ctx context.Context, stdout io.Writer) (err error) {
	p.decisions = metrics.NewDecisions(p.metrics)
	p.decisions.Use(p.limits.Set())
	if p.emf, err = p.openEMF(stdout); err != nil {
		return err
	}
	if p.webhook, err = p.openWebhook(); err != nil {
		return err
	}
	p.tracer, err = p.openTracing(ctx)
	return err
}

// outputs returns the parts that pass on what the last requests caused.
func (p *Proxy) outputs() (all []run.Part) {
	if p.emf != nil {
		all = append(all, p.emf.Run)
	}
	if p.webhook != nil {
		all = append(all, p.webhook.Run)
	}
	if p.tracer != nil {
		all = append(all, p.tracer.Run)
	}
	return all
}
