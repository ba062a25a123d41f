package capacity

// The CPU of a master per call that docs/performance-tables.md has for other batches than
// the default.
var (
	SingleCallCPU  = Number{38.1, "us", OriginPerformance, "hot-fleet: 1.02 calls in a script"}
	BatchedCallCPU = Number{2.17, "us", OriginPerformance, "cluster-p16: 90.9 calls in a script"}
)

// The CPU of a proxy per request, plain and by TLS.
var (
	plainProxyCPU = Number{9.51, "us", OriginPerformance, "cluster-p1"}
	tlsProxyCPU   = Number{18.1, "us", OriginPerformance, "cluster-p1 x 1.90, the ratio of tls-redis-p1"}
)

// Default returns the input of rps requests a second with the default of every other number, and
// of one call of one bucket for each request.
func Default(rps Number, tls bool, prices *Prices) *Input {
	measured := func(value float64, unit, note string) Number { return Number{value, unit, OriginPerformance, note} }
	assumed := func(value float64, unit, note string) Number { return Number{value, unit, OriginCapacity, note} }
	in := &Input{
		RPS: rps, PeakRPS: Number{rps.Value, rps.Unit, rps.Origin, "the mean"},
		Tenants: assumed(10_000, "", ""),
		Values:  assumed(100, "", ""),
		Limits:  assumed(1, "", ""),
		TopRate: assumed(0, "units/s", "not known"),

		CallCPU:    measured(6.80, "us", "cluster-p1: 5.41 calls in a script"),
		FieldCPU:   measured(0.84, "us", "two-levels-fixed: 3.55 - 2.71"),
		KeyCPU:     measured(2.69, "us", "two-levels: 4.24 - 1.55"),
		StoreTLS:   measured(1.90, "", "tls-redis-p1, of a proxy: that of a master is not measured"),
		ProxyCPU:   plainProxyCPU,
		ProxyCores: assumed(4, "", ""),

		Utilisation: assumed(0.6, "", "so that a hot hour fits"),
		LocalShare:  assumed(0, "", "every request asks the store"),
		Replicas:    assumed(1, "", ""),

		SentBytes:        assumed(50, "B", ""),
		ReceivedBytes:    assumed(12, "B", ""),
		ReplicaBytes:     assumed(103, "B", ""),
		MoreSent:         assumed(16, "B", ""),
		MoreReceived:     assumed(11, "B", ""),
		MoreReplicaBytes: assumed(56, "B", ""),
		CrossZone:        assumed(2.0/3, "", "three zones"),

		StringBytes:  measured(194, "B", "bucket-bytes: by tenant, 10,000,000 keys, used_memory"),
		FieldBytes:   assumed(32, "B", ""),
		KeyBytes:     measured(209, "B", "bucket-bytes: by tenant and op, sliding window, used_memory"),
		UsableMemory: assumed(0.75, "", "the rest is reserved, as ElastiCache does"),
		Connections:  assumed(5, "", "a pipeline, and the pool's 4"),
		MaxClients:   assumed(65_000, "", "maxclients of ElastiCache"),

		Request: Request{Kind: "one bucket by tenant", Calls: []Call{{Fields: 1}}},
		Stored:  Stored{Fields: 1},
		Engine:  Choice{Engines[0], OriginCapacity},
		Node:    Choice{"", OriginCapacity},
		TLS:     Choice{"off", OriginCapacity},
		Edge:    Choice{EdgeNone, OriginCapacity},
		Metrics: Choice{MetricsPrometheus, OriginCapacity},
		Prices:  prices,
	}
	if tls {
		in.TLS, in.ProxyCPU = Choice{TLSOn, OriginGiven}, tlsProxyCPU
	}
	in.Kinds = []Request{in.Request}
	return in
}
