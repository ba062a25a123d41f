package proxy

import (
	"io"

	"github.com/limitgate/limitgate/internal/run"
)

// openOutputs opens the receivers of metrics and events of the settings.
func (p *Proxy) openOutputs(stdout io.Writer) (err error) {
	if p.emf, err = p.openEMF(stdout); err != nil {
		return err
	}
	p.webhook, err = p.openWebhook()
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
