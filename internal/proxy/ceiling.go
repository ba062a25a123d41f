package proxy

import (
	"context"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/limit"
)

// adviseCeiling logs that the backstop has no ceiling, once the number of proxies is
// known.
func (p *Proxy) adviseCeiling(ctx context.Context) error {
	if p.settings.BackstopTotalRate > 0 {
		return nil
	}
	p.count.WaitFirst(ctx)
	proxies := 0
	if p.count.Status().Err == nil {
		proxies = p.count.Healthy()
	}
	fits := p.limits.Set().TotalRate()
	if p.settings.EnvoyAlone() {
		fits = limit.TotalRate{Why: "the files of Envoy's limits do not list all values of descriptors"}
	}
	p.log.Warn("the backstop has no ceiling", "advice", backstop.CeilingAdvice(fits, proxies))
	return nil
}
