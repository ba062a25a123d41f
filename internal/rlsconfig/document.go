package rlsconfig

// Bounds of a configuration. Envoy Gateway makes some ten descriptors of a route, at most four
// levels deep.
const (
	maxDepth       = 64
	maxDescriptors = 100_000 // of all domains
	maxKeyBytes    = 1 << 10 // of keys, domains and names
	maxValueBytes  = 16 << 10
	// maxPathBytes bounds the paths of all rules: each repeats those above it.
	maxPathBytes = 64 << 20
)

// document is a file or a resource as it was written: the form in which both are compiled.
type document struct {
	at          place
	domain      text
	descriptors []descriptorSpec
}

// text is a scalar. A broken one has a mistake that is recorded already.
type text struct {
	value  string
	line   int
	broken bool
}

// descriptorSpec is an element of descriptors.
type descriptorSpec struct {
	at             place
	key, value     text
	policy         *policySpec
	descriptors    []descriptorSpec
	shadow         bool
	quota          bool
	detailedMetric bool
	valueToMetric  bool
	shareThreshold bool
	metadata       map[string]any
}

// policySpec is a rate_limit.
type policySpec struct {
	at              place
	unit            text
	requestsPerUnit uint32
	noRequests      bool // a file does not say requests_per_unit
	unlimited       bool
	name            text
	replaces        []replaceSpec
	broken          bool // a value has a mistake that is recorded already
}

// replaceSpec is an element of replaces.
type replaceSpec struct {
	at   place
	name text
}
