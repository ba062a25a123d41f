package proxy

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/rollout"
	"github.com/limitgate/limitgate/internal/dashboard"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/metrics"
)

// rolloutWatch watches the canary limits of some of the tenants.
type rolloutWatch struct {
	comparison *rollout.Comparison
	worse      chan rollout.Stats // of size 1: each version is sent once
}

// newRolloutWatch returns the watch of this proxy's limits.
func (p *Proxy) newRolloutWatch(addrs *limit.AddrHasher) *rolloutWatch {
	t := &rolloutWatch{worse: make(chan rollout.Stats, 1)}
	t.comparison = rollout.New(rollout.Options{Addrs: addrs, Instances: p.count.Healthy, Worse: func(f rollout.Stats) {
		select {
		case t.worse <- f:
		default: // another version is being taken back
		}
	}})
	return t
}

// followLimits begins with the limits in use, and makes later decisions use their changes.
func (p *Proxy) followLimits() {
	now := time.Now().UnixMilli()
	p.limitsSince.Store(now)
	p.trialSince.Store(now)
	if p.settings.Admin != "" {
		p.history = dashboard.NewHistory(p.limits.Status().Source, p.limiter.Limits())
	}
	p.limits.OnChange(p.setLimits)
}

// setLimits makes later decisions use set.
func (p *Proxy) setLimits(set *limit.Set) {
	p.rolloutWatch.comparison.Begin(set, p.limits.Threshold())
	before, now := p.limiter.Limits(), time.Now().UnixMilli()
	if set.Version != before.Version { // and not a trial, or the same file again
		p.limitsSince.Store(now)
	}
	tried, _ := before.Trial()
	if next, _ := set.Trial(); next != nil && (tried == nil || next.Version != tried.Version) {
		p.trialSince.Store(now)
	}
	p.limiter.SetLimits(set)
	p.decisions.Use(set)
	if p.history != nil {
		p.history.Use(set)
	}
}

// watchRollout ends the canary of limits that deny too much, until ctx ends.
func (p *Proxy) watchRollout(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-p.rolloutWatch.worse:
			if err := p.limits.TakeBack(f.Version, f.String()); err != nil {
				if !errors.Is(err, config.ErrNoTrial) { // otherwise the canary has already ended
					p.log.Error("failed to take back canary limits that deny too much", "version", f.Version, "why", f.String(), "error", err)
				}
				continue
			}
			attrs := []any{"version", f.Version, "why", f.String()}
			if !strings.HasPrefix(p.settings.Limits, config.LimitsTablePrefix) {
				attrs = append(attrs, "advice", "restore the file before, as a proxy that starts takes this one for all tenants")
			}
			p.log.Error("canary limits taken back", attrs...)
		}
	}
}

// rolloutMetrics returns the metrics of the canary, at each scrape.
func (p *Proxy) rolloutMetrics() metrics.Trial {
	f := p.rolloutWatch.comparison.Figures()
	m := metrics.Trial{Version: f.Version, Requests: f.Requests, DeniedNow: f.DeniedNow, DeniedBefore: f.DeniedBefore}
	if _, share := p.limiter.Limits().Trial(); m.Version != "" {
		m.Share = float64(share) / limit.TrialWhole
	}
	return m
}
