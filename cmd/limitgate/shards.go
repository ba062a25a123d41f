package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/breaker"
	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/metrics"
)

// newOutages registers the histogram of outages.
func newOutages(r prometheus.Registerer) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "limitgate_shard_outage_seconds",
		Help: "How long masters of the store were out, from the first failed call to the first that succeeded.",
		// From a hiccup to an hour.
		Buckets: prometheus.ExponentialBucketsRange(0.1, 3600, 15),
	})
	r.MustRegister(h)
	return h
}

// shardMetrics reads the breakers for metrics.
func (p *proxy) shardMetrics() []metrics.Shard {
	var all []metrics.Shard
	for _, sh := range p.cluster.Shards() {
		m := metrics.Shard{Addr: sh.Addr, State: int(sh.State), Transitions: map[string]int64{}}
		for i, n := range sh.Transitions {
			m.Transitions[breaker.State(i).String()] = n
		}
		all = append(all, m)
	}
	return all
}

// shards reads the breakers for RL.CONFIG SHARDS and /readyz.
func (p *proxy) shards() []commands.Shard {
	if p.cluster == nil {
		return nil
	}
	var all []commands.Shard
	for _, sh := range p.cluster.Shards() {
		all = append(all, describeShard(sh, time.Now()))
	}
	return all
}

func describeShard(sh cluster.Shard, now time.Time) commands.Shard {
	c := commands.Shard{Addr: sh.Addr, Breaker: sh.State.String()}
	if sh.Err != nil {
		c.Error = sh.Err.Error()
	}
	if !sh.Probe.IsZero() {
		c.NextProbe = max(0, sh.Probe.Sub(now))
	}
	return c
}
