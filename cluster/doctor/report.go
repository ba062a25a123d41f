package doctor

import (
	"slices"
	"time"

	"github.com/limitgate/limitgate/cluster"
)

// Report is the result of Inspect.
type Report struct {
	// Verdict is the highest severity of the findings.
	Verdict Severity `json:"verdict"`
	// Kind is "cluster" or "redis"; empty if neither was found.
	Kind string `json:"kind,omitempty"`
	// Mode is how batches are sent to most of the masters.
	Mode      cluster.Mode    `json:"mode,omitempty"`
	Addresses []AddressReport `json:"addresses"`
	Masters   []MasterReport  `json:"masters"`
	Findings  []Finding       `json:"findings"`
}

// AddressReport is the result for one address of the store.
type AddressReport struct {
	Addr string `json:"addr"`
	// Role is the role that the node reports: master, slave or sentinel.
	Role string `json:"role,omitempty"`
	// Master is the address of a replica's master, if it has one.
	Master string `json:"master,omitempty"`
	// Error is the reason why the topology cannot be fetched from it; empty if it can.
	Error string `json:"error,omitempty"`

	run        string // run id of a node outside a cluster
	away       bool   // it does not answer, and is not that of a Sentinel
	otherStore bool   // it belongs to another store than the first address
}

// MasterReport is the result for one master of the store.
type MasterReport struct {
	Addr string `json:"addr"`
	// Error is the reason why the master could not be examined, or only partly.
	Error    string       `json:"error,omitempty"`
	Slots    string       `json:"slots,omitempty"` // of a cluster: "0-5460 7000"
	Replicas []string     `json:"replicas"`
	Copying  []string     `json:"copying,omitempty"` // replicas that have no copy of its data yet
	Server   string       `json:"server,omitempty"`  // Redis or Valkey
	Version  string       `json:"version,omitempty"`
	Mode     cluster.Mode `json:"mode,omitempty"`
	// Connect is the time for connecting, loading the script and probing.
	Connect time.Duration `json:"connect_ns"`
	Clock   Clock         `json:"clock"`
	// RoundTrip is the duration of a PING.
	RoundTrip RoundTrip `json:"round_trip"`
	Decision  Decision  `json:"decision"`
	// CPU is measured on the first master if that is asked for; CPUError is the reason why it
	// could not be.
	CPU      []CallCPU `json:"cpu,omitempty"`
	CPUError string    `json:"cpu_error,omitempty"`
	// MemoryPolicy is maxmemory-policy, empty if the node does not report it.
	MemoryPolicy string `json:"maxmemory_policy,omitempty"`
	// AOF reports whether every write is appended to a file; nil if the node does not
	// report it.
	AOF *bool `json:"aof"`
	// ClusterState is the cluster state that the node reports: ok or fail.
	ClusterState string `json:"cluster_state,omitempty"`
	// FullCoverage is cluster-require-full-coverage, yes or no, if the state of the cluster
	// shows it.
	FullCoverage string `json:"full_coverage,omitempty"`
	Probes       Probes `json:"probes"`
	// MissingRights are the rules of cluster.Rights that the user lacks.
	MissingRights []string `json:"missing_rights,omitempty"`

	compatible string // compatible version of Redis
}

// Probes are the results of the probes of a master.
type Probes struct {
	Script Outcome `json:"script"`          // run a script that was loaded
	Keys   Outcome `json:"keys_in_a_slot"`  // run it on several keys of one slot
	Shard  Outcome `json:"undeclared_keys"` // run it on keys that are not declared; only of a cluster
	Write  Outcome `json:"write"`           // write a bucket of each form, with its expiry
	Sets   Outcome `json:"sorted_sets"`     // keep units that end one by one
	Batch  Outcome `json:"batch"`           // decide a batch as its mode has it
	Secret Outcome `json:"secret"`          // keep a secret that proxies agree on
	Beat   Outcome `json:"heartbeat"`       // say that a proxy is there
	Remove Outcome `json:"remove"`          // remove what the probes wrote
}

// Outcome is the result of a probe: Done, the reason of the failure, or empty if the probe
// was not made.
type Outcome string

// Done is the outcome of a successful probe.
const Done Outcome = "ok"

// outcome returns the outcome of a probe that returned err.
func outcome(err error) Outcome {
	if err != nil {
		return Outcome(err.Error())
	}
	return Done
}

// Clock compares a master's clock with that of this machine.
type Clock struct {
	// Offset is how far the master's clock is ahead.
	Offset time.Duration `json:"offset_ns"`
	// Within is the maximum error of Offset.
	Within time.Duration `json:"within_ns"`
}

// RoundTrip is the duration of a number of sequential exchanges.
type RoundTrip struct {
	Exchanges int           `json:"exchanges"`
	Min       time.Duration `json:"min_ns"`
	Median    time.Duration `json:"median_ns"`
	P99       time.Duration `json:"p99_ns"`
}

// summarize returns the round trip of exchanges with the given durations.
func summarize(times []time.Duration) RoundTrip {
	if len(times) == 0 {
		return RoundTrip{}
	}
	slices.Sort(times)
	n := len(times)
	return RoundTrip{Exchanges: n, Min: times[0], Median: times[n/2], P99: times[(n*99+99)/100-1]}
}

// Decision is how long one decision on one bucket keeps a master busy, by the master's
// clock: the median of a number of calls.
type Decision struct {
	// Calls is the number of decisions that were measured.
	Calls int `json:"calls"`
	// Alone is for a decision in a call of its own, and Batched for one of BatchSize in a
	// batch.
	Alone     time.Duration `json:"alone_ns"`
	Batched   time.Duration `json:"batched_ns"`
	BatchSize int           `json:"batch_size"`
}

// Finding is the assessment of one property of the store.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check is the name of the property, one word.
	Check string `json:"check"`
	// Nodes are the addresses of the nodes concerned; none if the finding is about the
	// store.
	Nodes []string `json:"nodes,omitempty"`
	// Text is the observation and, unless all is well, the remedy.
	Text string `json:"text"`
}

// CheckPersistence is the name of the check whether masters keep an AOF.
const CheckPersistence = "persistence"

// Severity is the severity of a finding.
type Severity uint8

// The severities, in ascending order.
const (
	SeverityOK   Severity = iota
	SeverityNote          // worth knowing
	SeverityWarn          // works, but should be fixed
	SeverityFail          // a proxy would not work, or not well
)

// String returns the word for the severity.
func (s Severity) String() string { return [...]string{"ok", "note", "warn", "fail"}[s] }

// MarshalText writes the word for the severity.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
