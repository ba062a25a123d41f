package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/limitgate/limitgate/internal/latency"
)

// Store is the state of the store at a scrape. Its counters never fall, but for those of batches: errors
// of a master that left the store are counted without a master.
type Store struct {
	Shards []Shard
	// Errors counts calls that were left undecided and do not belong to a present master,
	// by kind.
	Errors map[string]int64
	// Redirects counts calls that were retried because of a redirect, by kind.
	Redirects map[string]int64
	// Shed counts calls that were not sent in time.
	Shed int64
	// ScriptLoads, RefundsLost, Reloads, Resets and RoleErrors are those of
	// cluster.Stats.
	ScriptLoads, RefundsLost, Reloads, Resets, RoleErrors int64
}

// Shard is the state of one master of the store.
type Shard struct {
	Addr string
	// State is that of its breaker: 0 closed, 1 open, 2 half-open.
	State int
	// Transitions counts the breaker's transitions into each state, by its word.
	Transitions map[string]int64
	// Errors counts calls that it left undecided, by kind.
	Errors map[string]int64
	// Batches counts the batches that it answered, Calls the scripts that it ran for them, and Checks
	// what callers asked for in them. Queued is how much of it waits now.
	Batches, Calls, Checks, Queued int64
	// RoundTrip is the time from sending a batch to its last reply.
	RoundTrip *latency.Histogram
}

// family is a metric of the store.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// send sends the value with the labels.
func (f family) send(to chan<- prometheus.Metric, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
}

func newFamily(kind prometheus.ValueType, name, help string, labels ...string) family {
	return family{prometheus.NewDesc(name, help, labels, nil), kind}
}

var (
	storeBatches = newFamily(prometheus.CounterValue, "limitgate_store_batches_total",
		"Batches of calls that each master of the store has answered.", "shard")
	storeCalls = newFamily(prometheus.CounterValue, "limitgate_store_calls_total",
		"Scripts that it ran for them.", "shard")
	storeChecks = newFamily(prometheus.CounterValue, "limitgate_store_checks_total",
		"What callers asked for in them, for each hash slot of a check once.", "shard")
	storeQueued = newFamily(prometheus.GaugeValue, "limitgate_store_queued_checks",
		"Checks that wait to be sent to each master of the store.", "shard")
	roundTrip = prometheus.NewDesc("limitgate_store_batch_seconds",
		"From sending a batch to its last reply.", []string{"shard"}, nil)

	breakerState = newFamily(prometheus.GaugeValue, "limitgate_breaker_state",
		"The breaker of each master of the store: 0 closed, 1 open, 2 half-open.", "shard")
	breakerTransitions = newFamily(prometheus.CounterValue, "limitgate_breaker_transitions_total",
		"How often the breaker of each master of the store came into a state.", "shard", "state")
	storeErrors = newFamily(prometheus.CounterValue, "limitgate_store_errors_total",
		"Calls the store left undecided, by master, empty where none was asked or it has gone since, and kind.", "shard", "kind")
	storeRedirects = newFamily(prometheus.CounterValue, "limitgate_store_redirects_total",
		"Calls that were asked for again where a redirect led, by kind.", "kind")
	shedDecisions = newFamily(prometheus.CounterValue, "limitgate_shed_decisions_total",
		"Calls that the store was not asked for because their turn did not come in time.")
	scriptLoads = newFamily(prometheus.CounterValue, "limitgate_script_loads_total",
		"Scripts loaded into nodes that did not have them.")
	refundsLost = newFamily(prometheus.CounterValue, "limitgate_refunds_lost_total",
		"Buckets whose units could not be given back, or may be charged by a call whose answer came too late.")
	topologyReloads = newFamily(prometheus.CounterValue, "limitgate_topology_reloads_total",
		"Times the topology of the store was asked for.")
	storeResets = newFamily(prometheus.CounterValue, "limitgate_store_reset_total",
		"Masters that lost their data, so that their buckets are full again.")
	roleMismatch = newFamily(prometheus.CounterValue, "limitgate_role_mismatch_total",
		"Connections that were refused because the node is not a master.")
)

// storeCollector reads the store once for each scrape, since its masters change.
type storeCollector struct{ read func() Store }

// RegisterStore registers the metrics of the Store that read returns.
func RegisterStore(r prometheus.Registerer, read func() Store) { r.MustRegister(&storeCollector{read}) }

// Describe implements prometheus.Collector.
func (*storeCollector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range []family{
		breakerState, breakerTransitions, storeErrors, storeRedirects, shedDecisions,
		scriptLoads, refundsLost, topologyReloads, storeResets, roleMismatch,
		storeBatches, storeCalls, storeChecks, storeQueued,
	} {
		to <- f.desc
	}
	to <- roundTrip
}

// Collect implements prometheus.Collector.
func (c *storeCollector) Collect(to chan<- prometheus.Metric) {
	one := func(f family, value int64, labels ...string) {
		f.send(to, float64(value), labels...)
	}
	st := c.read()
	for kind, n := range st.Errors {
		one(storeErrors, n, "", kind)
	}
	for _, sh := range st.Shards {
		one(breakerState, int64(sh.State), sh.Addr)
		for state, n := range sh.Transitions {
			one(breakerTransitions, n, sh.Addr, state)
		}
		for kind, n := range sh.Errors {
			one(storeErrors, n, sh.Addr, kind)
		}
		one(storeBatches, sh.Batches, sh.Addr)
		one(storeCalls, sh.Calls, sh.Addr)
		one(storeChecks, sh.Checks, sh.Addr)
		one(storeQueued, sh.Queued, sh.Addr)
		if sh.RoundTrip != nil {
			to <- sh.RoundTrip.Metric(roundTrip, []*dto.LabelPair{{Name: new("shard"), Value: new(sh.Addr)}})
		}
	}
	for kind, n := range st.Redirects {
		one(storeRedirects, n, kind)
	}
	one(shedDecisions, st.Shed)
	one(scriptLoads, st.ScriptLoads)
	one(refundsLost, st.RefundsLost)
	one(topologyReloads, st.Reloads)
	one(storeResets, st.Resets)
	one(roleMismatch, st.RoleErrors)
}
