package proxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/run"
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

const (
	// cappedPause is the interval at which the denials by the total rate are looked at.
	cappedPause = time.Second
	// cappedQuiet is the shortest time between two lines about them: an outage lasts for minutes, and each of
	// its seconds may have thousands.
	cappedQuiet = time.Minute
)

// watchTotalRate logs that --backstop-total-rate denies requests, if it is on.
func (p *Proxy) watchTotalRate(ctx context.Context) error {
	if rate := int64(p.settings.BackstopTotalRate); rate > 0 {
		watchCapped(ctx, p.log, rate, p.backstop.Capped)
	}
	return nil
}

// watchCapped logs the denials by a total rate. Capped returns how many there were.
func watchCapped(ctx context.Context, log *slog.Logger, rate int64, capped func() int64) {
	logged := int64(0)
	for pause := cappedPause; run.Sleep(ctx, pause); {
		n := capped()
		if pause = cappedPause; n == logged {
			continue
		}
		log.Warn("--backstop-total-rate denied requests that their limits admit", "denied", n-logged, "total_rate", rate, "advice", "the store is out, and all tenants together ask for more: bring it back, or raise the rate if the service behind bears more")
		logged, pause = n, cappedQuiet
	}
}
