// Package capacity computes how many shards and proxies a load needs, and their monthly bill.
// It reads and fetches nothing: its callers pass every number, with its origin.
package capacity

import (
	"fmt"
	"math"
)

// Origin is the source of a number.
type Origin string

// The origins of numbers.
const (
	OriginGiven       Origin = "given"
	OriginLimits      Origin = "limits file"
	OriginMeasured    Origin = "measured by doctor"
	OriginPerformance Origin = "default: docs/performance.md"
	OriginCapacity    Origin = "default: docs/capacity.md"
	OriginPrices      Origin = "prices file"
)

// Number is an input of a plan.
type Number struct {
	Value  float64 `json:"value"`
	Unit   string  `json:"unit,omitempty"`
	Origin Origin  `json:"origin"`
	// Note names the row of a table, the flag or the file that has the value.
	Note string `json:"note,omitempty"`
}

// Choice is an input of a plan that is a word.
type Choice struct {
	Value  string `json:"value"`
	Origin Origin `json:"origin"`
}

// Call is one call to the store, of buckets in one hash slot.
type Call struct {
	// Fields is the number of buckets in the tenant's string, and Keys of those with a key
	// of their own.
	Fields int `json:"fields"`
	Keys   int `json:"keys"`
}

// buckets is the number of buckets of the call.
func (c Call) buckets() int { return c.Fields + c.Keys }

// Request is a kind of request: what one request asks of the store.
type Request struct {
	Kind string `json:"kind"`
	// Calls has an element for each call to the store, and Local is the number of buckets in
	// the proxy.
	Calls []Call `json:"calls"`
	Local int    `json:"local"`
}

// Buckets returns the number of buckets, those in the proxy included.
func (r *Request) Buckets() int {
	n := r.Local
	for _, c := range r.Calls {
		n += c.buckets()
	}
	return n
}

// Stored is what the limits keep in the store.
type Stored struct {
	// Fields is the number of buckets in each tenant's string.
	Fields int `json:"fields_per_tenant"`
	// Keys is the number of limits with a key for each value of their dimensions, and Single
	// of those with one key for each tenant.
	Keys   int `json:"limits_by_value"`
	Single int `json:"limits_by_tenant"`
}

// Engines are the engines that a node can run.
var Engines = []string{"valkey", "redis"}

// The edges of a service, in front of its proxies. EdgeNone costs nothing.
const (
	EdgeNone          = "none"
	EdgeRest          = "api-gateway-rest"
	EdgeHTTP          = "http-api"
	EdgeCloudFrontWAF = "cloudfront-waf"
)

// Edges are the edges of a bill.
var Edges = []string{EdgeNone, EdgeRest, EdgeHTTP, EdgeCloudFrontWAF}

// The receivers of metrics.
const (
	MetricsPrometheus = "prometheus"
	MetricsEMF        = "emf"
)

// Receivers are the receivers of metrics of a bill.
var Receivers = []string{MetricsPrometheus, MetricsEMF}

// Input is what a plan is made of.
type Input struct {
	// RPS is the mean number of requests a second, which bills by request follow, and PeakRPS
	// the number that shards and proxies are sized for.
	RPS     Number `json:"rps"`
	PeakRPS Number `json:"peak_rps"`
	Tenants Number `json:"tenants"`
	// Values is the number of values that each tenant has of the dimensions of a limit with
	// a key for each.
	Values Number `json:"values_per_tenant"`
	// CallCPU is the processor time of a master for a call of one bucket, FieldCPU for each
	// further bucket in the tenant's string, and KeyCPU for each further one with a key of its own.
	CallCPU  Number `json:"cpu_per_call"`
	FieldCPU Number `json:"cpu_per_further_field"`
	KeyCPU   Number `json:"cpu_per_further_key"`
	// StoreTLS multiplies these on nodes that encrypt in the thread that runs scripts.
	StoreTLS Number `json:"store_tls_factor"`
	// ProxyCPU is the processor time of a proxy for a request, and ProxyCores its processors.
	ProxyCPU   Number `json:"proxy_cpu_per_request"`
	ProxyCores Number `json:"cores_per_proxy"`
	// Utilisation is the part of a processor, and of a node's network, that the peak may use.
	Utilisation Number `json:"utilisation"`
	// LocalShare is the part of the requests that leases, the deny cache or equal requests of
	// one batch decide without a call.
	LocalShare Number `json:"local_share"`
	Replicas   Number `json:"replicas"`
	// The bytes that a call of one bucket sends to the store, receives, and makes each
	// replica receive, and those of each further bucket.
	SentBytes        Number `json:"bytes_sent_per_call"`
	ReceivedBytes    Number `json:"bytes_received_per_call"`
	ReplicaBytes     Number `json:"bytes_replicated_per_call"`
	MoreSent         Number `json:"bytes_sent_per_further_bucket"`
	MoreReceived     Number `json:"bytes_received_per_further_bucket"`
	MoreReplicaBytes Number `json:"bytes_replicated_per_further_bucket"`
	// CrossZone is the part of the calls that go to another zone.
	CrossZone Number `json:"cross_zone_share"`
	// StringBytes is the memory of a tenant's string with one bucket, FieldBytes of each further
	// bucket in it, and KeyBytes of a bucket with a key of its own.
	StringBytes  Number `json:"bytes_per_string"`
	FieldBytes   Number `json:"bytes_per_further_field"`
	KeyBytes     Number `json:"bytes_per_key"`
	UsableMemory Number `json:"usable_memory"`
	Connections  Number `json:"connections_per_proxy_and_shard"`
	MaxClients   Number `json:"connections_per_node"`
	// TopRate is the highest rate of a bucket in the store, in units a second; 0 if unknown.
	TopRate Number `json:"highest_rate_of_a_bucket"`
	// Limits is the number of ids of limits, which have metrics of their own.
	Limits Number `json:"limits"`

	// Request is the kind of request that all requests are taken for, and Kinds are all kinds.
	Request Request   `json:"request"`
	Kinds   []Request `json:"kinds_of_request"`
	Stored  Stored    `json:"stored"`

	// Node is a node type; "" is the cheapest one that is known to carry the load.
	Node    Choice `json:"node"`
	Engine  Choice `json:"engine"`
	TLS     Choice `json:"tls"` // on or off, from clients to proxies and on to the store
	Edge    Choice `json:"edge"`
	Metrics Choice `json:"metrics"`

	Prices *Prices `json:"-"`
}

// TLSOn is the value of Input.TLS for connections by TLS.
const TLSOn = "on"

// MaxNumber bounds every input.
const MaxNumber = 1e15

// maxParts bounds the shards and the proxies of a plan.
const maxParts = 1_000_000

// check returns an error for inputs without a meaning.
func (in *Input) check() error {
	for _, n := range in.Numbers() {
		if math.IsNaN(n.Value) || n.Value < 0 || n.Value > MaxNumber {
			return fmt.Errorf("%s is %v: want a number from 0 to %.0e", n.Name, n.Value, MaxNumber)
		}
	}
	switch {
	case in.RPS.Value == 0:
		return fmt.Errorf("requests a second must be above 0")
	case in.PeakRPS.Value < in.RPS.Value:
		return fmt.Errorf("the peak of %s requests a second is below the mean of %s", count(in.PeakRPS.Value), count(in.RPS.Value))
	case in.Utilisation.Value <= 0 || in.Utilisation.Value > 1:
		return fmt.Errorf("utilisation is %v: want above 0, and at most 1", in.Utilisation.Value)
	case in.LocalShare.Value > 1 || in.CrossZone.Value > 1 || in.UsableMemory.Value > 1:
		return fmt.Errorf("a share is above 1: it is a part of a whole, such as 0.9")
	case in.ProxyCores.Value == 0:
		return fmt.Errorf("a proxy needs a processor")
	case in.UsableMemory.Value == 0 || in.MaxClients.Value == 0:
		return fmt.Errorf("a node needs memory and connections")
	case in.Prices == nil:
		return fmt.Errorf("prices are missing")
	}
	return nil
}
