package proxy

import (
	"context"

	"github.com/limitgate/limitgate/backstop"
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
	p.log.Warn("the backstop has no ceiling", "advice", backstop.CeilingAdvice(p.limits.Set().TotalRate(), proxies))
	return nil
}
