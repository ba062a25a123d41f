package cluster

import (
	"slices"
	"time"
)

// Report is what Inspect found out about a store.
type Report struct {
	// Verdict is the gravest severity among the findings.
	Verdict Severity `json:"verdict"`
	// Kind is "cluster" or "redis"; empty when neither was found.
	Kind string `json:"kind,omitempty"`
	// Mode is how batches travel to most of the masters.
	Mode      Mode            `json:"mode,omitempty"`
	Addresses []AddressReport `json:"addresses"`
	Masters   []MasterReport  `json:"masters"`
	Findings  []Finding       `json:"findings"`
}

// AddressReport is what became of an address that the store was looked for at.
type AddressReport struct {
	Addr string `json:"addr"`
	// Role is what the node says it is: master, slave or sentinel.
	Role string `json:"role,omitempty"`
	// Master is the address of a replica's master, where it has one.
	Master string `json:"master,omitempty"`
	// Error says why a store cannot be learnt from it; empty when it can.
	Error string `json:"error,omitempty"`

	run        string // the run id of one that is no cluster
	otherStore bool   // it leads to another store than the first address
}

// MasterReport is what one master of the store does.
type MasterReport struct {
	Addr string `json:"addr"`
	// Error says why it could not be examined, or only in part.
	Error    string   `json:"error,omitempty"`
	Slots    string   `json:"slots,omitempty"` // of a cluster: "0-5460 7000"
	Replicas []string `json:"replicas"`
	Server   string   `json:"server,omitempty"` // Redis or Valkey
	Version  string   `json:"version,omitempty"`
	Mode     Mode     `json:"mode,omitempty"`
	// Connect is how long it took to connect, load the script and probe.
	Connect time.Duration `json:"connect_ns"`
	Clock   Clock         `json:"clock"`
	// RoundTrip is how long a PING takes.
	RoundTrip RoundTrip `json:"round_trip"`
	Decision  Decision  `json:"decision"`
	// MemoryPolicy is maxmemory-policy, empty when the node does not tell.
	MemoryPolicy string `json:"maxmemory_policy,omitempty"`
	// AOF says whether every write is kept on disk; nil when the node does not
	// tell.
	AOF *bool `json:"aof"`
	// ClusterState is what the node calls its cluster: ok or fail.
	ClusterState string `json:"cluster_state,omitempty"`
	// FullCoverage is cluster-require-full-coverage, yes or no, where the state of
	// the cluster gives it away.
	FullCoverage string `json:"full_coverage,omitempty"`
	Probes       Probes `json:"probes"`

	compatible string // the version of Redis that it is compatible with
}

// Probes are what a master was asked to do.
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

// Outcome is what came of a probe: Done, the reason why not, or nothing when it
// was not made.
type Outcome string

// Done is the outcome of a probe that did what it should.
const Done Outcome = "ok"

// outcome returns what came of a probe that ended with err.
func outcome(err error) Outcome {
	if err != nil {
		return Outcome(err.Error())
	}
	return Done
}

// Clock is a master's clock beside that of this machine.
type Clock struct {
	// Offset is how far the master's is ahead.
	Offset time.Duration `json:"offset_ns"`
	// Within is how far off Offset may be.
	Within time.Duration `json:"within_ns"`
}

// RoundTrip is how long a number of exchanges took, one after the other.
type RoundTrip struct {
	Exchanges int           `json:"exchanges"`
	Min       time.Duration `json:"min_ns"`
	Median    time.Duration `json:"median_ns"`
	P99       time.Duration `json:"p99_ns"`
}

// summarize returns the round trip of exchanges that took as long as times.
func summarize(times []time.Duration) RoundTrip {
	if len(times) == 0 {
		return RoundTrip{}
	}
	slices.Sort(times)
	n := len(times)
	return RoundTrip{Exchanges: n, Min: times[0], Median: times[n/2], P99: times[(n*99+99)/100-1]}
}

// Decision is how long a master is busy with one decision on one bucket, by its
// own clock: the median of a number of calls.
type Decision struct {
	// Calls is how many decisions were made to find out.
	Calls int `json:"calls"`
	// Alone is one that is made by a call of its own, and Batched one of
	// BatchSize that travel together.
	Alone     time.Duration `json:"alone_ns"`
	Batched   time.Duration `json:"batched_ns"`
	BatchSize int           `json:"batch_size"`
}

// Mode is how batches of checks travel to a master.
type Mode string

// The modes. All of them decide the same.
const (
	// ModeSingle is one script call for a batch, which declares its keys: that of
	// a Redis that is no cluster.
	ModeSingle Mode = "single"
	// ModeShardWide is one script call for a batch, which does not declare its
	// keys, because they live in many slots of a cluster.
	ModeShardWide Mode = "shard-wide"
	// ModePerSlot is a script call for each slot in a batch.
	ModePerSlot Mode = "per-slot"
)

// String says what the mode means.
func (m Mode) String() string {
	switch m {
	case ModeSingle:
		return "single: one script call decides a batch"
	case ModeShardWide:
		return "shard-wide: one script call decides a batch for all slots of a master"
	case ModePerSlot:
		return "per-slot: a batch takes a script call for each slot in it"
	default:
		return "none"
	}
}

// mode returns what the options of a connection are called.
func (o batchOptions) mode() Mode {
	switch {
	case !o.acrossSlots:
		return ModePerSlot
	case o.declared:
		return ModeSingle
	default:
		return ModeShardWide
	}
}

// Finding says of one property of the store what it means.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check is the property, one word.
	Check string `json:"check"`
	// Nodes are the addresses that it was found at; none when it is about the store.
	Nodes []string `json:"nodes,omitempty"`
	// Text is what was found and, unless all is well, what would be right.
	Text string `json:"text"`
}

// Severity says how grave a finding is.
type Severity uint8

// The severities, in ascending order.
const (
	SeverityOK   Severity = iota
	SeverityNote          // worth knowing
	SeverityWarn          // works, and should be mended
	SeverityFail          // a proxy would not work, or not well
)

// String returns the word for the severity.
func (s Severity) String() string { return [...]string{"ok", "note", "warn", "fail"}[s] }

// MarshalText writes the word for the severity.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
