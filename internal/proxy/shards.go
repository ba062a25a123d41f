package proxy

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/metrics"
)

// newOutages registers the histogram of outages.
func newOutages(r prometheus.Registerer) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "limitgate_shard_outage_seconds",
		Help: "How long masters of the store were out, from the first failed call to the first that succeeded.",
		// From a tenth of a second to an hour.
		Buckets: prometheus.ExponentialBucketsRange(0.1, 3600, 15),
	})
	r.MustRegister(h)
	return h
}

// storeMetrics reads the store for metrics.
func (p *Proxy) storeMetrics() metrics.Store {
	shards := p.cluster.Shards() // before the sums, which are then not smaller
	st := p.cluster.Stats()
	all := metrics.Store{
		Errors: map[string]int64{}, Redirects: map[string]int64{},
		Shed: st.Undecided[cluster.KindOverload], ScriptLoads: st.ScriptLoads, RefundsLost: st.RefundsLost,
		Reloads: st.Reloads, Resets: st.Resets, RoleErrors: st.RoleErrors,
	}
	for _, k := range []cluster.ErrorKind{cluster.KindMoved, cluster.KindAsk, cluster.KindTryAgain} {
		all.Redirects[k.String()] = st.Redirects[k]
	}
	for _, k := range cluster.Kinds() {
		if k != cluster.KindOverload { // an overload is not the fault of a node
			all.Errors[k.String()] = st.Undecided[k]
		}
	}
	for _, sh := range shards {
		m := metrics.Shard{Addr: sh.Addr, State: int(sh.State), Transitions: map[string]int64{}, Errors: map[string]int64{}}
		for i, n := range sh.Transitions {
			m.Transitions[breaker.State(i).String()] = n
		}
		for _, k := range cluster.Kinds() {
			if k != cluster.KindNoNode && k != cluster.KindOverload {
				m.Errors[k.String()] = sh.Failures[k]
				all.Errors[k.String()] -= sh.Failures[k]
			}
		}
		t := sh.Traffic
		m.Batches, m.Calls, m.Checks, m.Queued, m.RoundTrip = t.Batches, t.Calls, t.Checks, t.Queued, t.RoundTrip
		all.Shards = append(all.Shards, m)
	}
	return all
}

// shards pings the masters and reads the breakers for RL.CONFIG SHARDS. While no master is known it returns one entry without
// an address, with the reason. So does it, behind the masters, for hash slots without a master.
func (p *Proxy) shards() []commands.Shard {
	if p.cluster == nil {
		return nil
	}
	if err := p.cluster.NoMaster(); err != nil {
		return []commands.Shard{{Breaker: breaker.Open.String(), Error: err.Error()}}
	}
	var all []commands.Shard
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	shards, _ := p.cluster.PingShards(ctx)
	for _, sh := range shards {
		all = append(all, describeShard(sh, time.Now()))
	}
	if err := p.cluster.Unowned(); err != nil {
		all = append(all, commands.Shard{Breaker: breaker.Open.String(), Error: err.Error()})
	}
	return all
}

// describeShard describes a master. The error of its ping counts if no call has failed, or if the last one failed for another reason.
func describeShard(sh cluster.Shard, now time.Time) commands.Shard {
	c := commands.Shard{Addr: sh.Addr, Breaker: sh.State.String()}
	if sh.Err != nil {
		c.Error, c.Failing = cluster.Describe(sh.Err), max(0, now.Sub(sh.Since))
	}
	if sh.Ping != nil && (sh.Err == nil || sh.PingDiffers()) {
		c.Error = "ping: " + cluster.Describe(sh.Ping)
	}
	if !sh.Probe.IsZero() {
		c.NextProbe = max(0, sh.Probe.Sub(now))
	}
	return c
}
