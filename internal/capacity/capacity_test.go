package capacity

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// input returns the input of a load, with one call of one bucket a request.
func input(t *testing.T, rps float64) *Input {
	t.Helper()
	prices, err := ParsePrices(DefaultPrices)
	if err != nil {
		t.Fatal(err)
	}
	return Default(Number{Value: rps, Unit: "/s", Origin: OriginGiven}, false, prices)
}

// made makes the plan of an input.
func made(t *testing.T, in *Input) *Plan {
	t.Helper()
	p, err := Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// commands sets the CPU of a request to a number of commands of which a shard executes perSecond.
func commands(in *Input, n, perSecond, utilisation float64) {
	in.CallCPU = Number{Value: n / perSecond * 1e6, Unit: "us", Origin: OriginGiven}
	in.Utilisation.Value = utilisation
}

// TestShards: the shards of worked examples, and the resource that decides.
func TestShards(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(in *Input)
		shards  int
		decided string
	}{
		"4 commands at 150,000/s":                {func(in *Input) { commands(in, 4, 150_000, 1) }, 27, BoundCPU},
		"8 commands at two thirds":               {func(in *Input) { commands(in, 8, 150_000, 2.0/3) }, 80, BoundCPU},
		"6.8 us at 0.6":                          {func(*Input) {}, 12, BoundCPU},
		"exactly 12":                             {func(in *Input) { in.CallCPU.Value = 7.2 }, 12, BoundCPU},
		"a little more":                          {func(in *Input) { in.CallCPU.Value = 7.2001 }, 13, BoundCPU},
		"the peak of three times":                {func(in *Input) { in.PeakRPS.Value = 3e6 }, 34, BoundCPU},
		"half of it local":                       {func(in *Input) { in.LocalShare.Value = 0.5 }, 6, BoundCPU},
		"all of it local":                        {func(in *Input) { in.LocalShare.Value = 1 }, 1, BoundCPU},
		"two calls, of 1 + 2 and 1 buckets":      {func(in *Input) { in.Request.Calls = []Call{{Fields: 2, Keys: 1}, {Keys: 1}} }, 29, BoundCPU},                              // 6.8 + 0.84 + 2.69 + 6.8 = 17.13 us
		"keys alone":                             {func(in *Input) { in.Request.Calls = []Call{{Keys: 3}} }, 21, BoundCPU},                                                    // 6.8 + 2 x 2.69
		"limits in the proxies":                  {func(in *Input) { in.Request = Request{Local: 4} }, 1, BoundCPU},                                                           // no call
		"TLS on two processors":                  {func(in *Input) { in.TLS.Value, in.Node.Value = TLSOn, "cache.r7g.large" }, 22, BoundCPU},                                  // 12.92 us
		"TLS on four processors":                 {func(in *Input) { in.TLS.Value, in.Node.Value = TLSOn, "cache.r7g.xlarge" }, 12, BoundCPU},                                 // threads of their own
		"1,000 M strings of 194 B":               {func(in *Input) { in.Tenants.Value, in.Node.Value = 1e9, "cache.r7g.large" }, 19, BoundMemory},                             // 180.7 of 9.80 GiB
		"a key for each of 100 values":           {func(in *Input) { in.Tenants.Value, in.Node.Value, in.Stored = 1e7, "cache.r7g.large", Stored{Keys: 1} }, 20, BoundMemory}, // 194.6 GiB
		"64 KiB a call":                          {func(in *Input) { in.SentBytes.Value, in.Node.Value = 65_536, "cache.r7g.large" }, 933, BoundNetwork},                      // 65.5 GB/s of 70.3 MB/s
		"two replicas of 1,000 B":                {func(in *Input) { in.ReplicaBytes.Value, in.Replicas.Value, in.Node.Value = 1000, 2, "cache.r7g.large" }, 29, BoundNetwork},
		"a node whose network is not known":      {func(in *Input) { in.SentBytes.Value, in.Node.Value = 65_536, "cache.c7gn.large" }, 12, BoundCPU},
		"many connections, which need no shards": {func(in *Input) { in.Connections.Value = 1e6 }, 12, BoundCPU},
	} {
		in := input(t, 1e6)
		test.change(in)
		if in.PeakRPS.Value < in.RPS.Value {
			t.Fatal(name)
		}
		if p := made(t, in); p.Shards != test.shards || p.DecidedBy != test.decided {
			t.Errorf("%s: %d shards by %s, want %d by %s: %+v", name, p.Shards, p.DecidedBy, test.shards, test.decided, p.Bounds)
		}
	}
}

// TestProxies: the proxies carry the peak at the utilisation, and one more is there.
func TestProxies(t *testing.T) {
	for _, test := range []struct {
		rps, cores float64
		want       int
	}{{1, 4, 2}, {1e6, 4, 5}, {1e6, 2, 9}, {1e7, 4, 41}} {
		in := input(t, test.rps)
		in.ProxyCores.Value = test.cores
		if p := made(t, in); p.Proxies != test.want || p.ProxiesNeeded != test.want-1 {
			t.Errorf("%v/s: %d proxies of which %d are needed, want %d", test.rps, p.Proxies, p.ProxiesNeeded, test.want)
		}
	}
}

// near reports whether an amount is the wanted one to a dollar.
func near(got *float64, want float64) bool { return got != nil && math.Abs(*got-want) <= 1 }

// TestStoreBill: 160 nodes at their hourly price, 730 hours.
func TestStoreBill(t *testing.T) {
	for engine, want := range map[string]float64{"valkey": 20_463, "redis": 25_579} {
		in := input(t, 1e6)
		commands(in, 8, 150_000, 2.0/3)
		in.Node.Value, in.Engine.Value = "cache.r7g.large", engine
		if p := made(t, in); p.Nodes != 160 || !near(p.Bill.Store, want) {
			t.Errorf("%s: %d nodes for %v, want 160 for %v", engine, p.Nodes, *p.Bill.Store, want)
		}
	}
}

// TestTransferBill: a million writes a second of 65 bytes are 168 TB in 30 days.
func TestTransferBill(t *testing.T) {
	in := input(t, 1e6)
	in.CrossZone.Value, in.ReplicaBytes.Value = 0, 65
	if p := made(t, in); !near(p.Bill.CrossZone, 1684.8) {
		t.Errorf("got %v", *p.Bill.CrossZone)
	}
}

// TestEdgeBill: requests of a day and of a month through the tiers of each edge.
func TestEdgeBill(t *testing.T) {
	prices := input(t, 1).Prices
	const day, month = 86.4e9, 2.592e12
	if day != 1e6*24*3600 || month != 1e6*SecondsPerMonth {
		t.Fatal("a million a second are 86.4e9 a day, and 2.592e12 in a month")
	}
	for _, test := range []struct {
		edge     string
		requests float64
		want     float64
	}{
		{EdgeRest, 0, 0},
		{EdgeRest, 1e6, 3.5},
		{EdgeRest, 333e6, 1165.5},
		{EdgeRest, 334e6, 1168.3},
		{EdgeRest, 1e9, 3033.1},
		{EdgeRest, 20e9, 48_253.1},
		{EdgeRest, day, 148_517.1},
		{EdgeRest, month, 3_931_973.1},
		{EdgeHTTP, day, 77_790},
		{EdgeHTTP, month, 2_332_830},
		{EdgeCloudFrontWAF, day, 51_840},
		{EdgeCloudFrontWAF, month, 1_555_200},
	} {
		if got := prices.edge(test.edge).Month(test.requests); math.Abs(got-test.want) > 0.01 {
			t.Errorf("%s, %v requests: %v, want %v", test.edge, test.requests, got, test.want)
		}
	}
}

// TestEdgeIsPaidByTheMean: a peak needs shards, and no more of what is paid by request.
func TestEdgeIsPaidByTheMean(t *testing.T) {
	in := input(t, 1e5)
	in.Edge.Value = EdgeHTTP
	mean := made(t, in)
	in.PeakRPS.Value = 5e5
	peak := made(t, in)
	if *peak.Bill.Edge != *mean.Bill.Edge || *peak.Bill.CrossZone != *mean.Bill.CrossZone || peak.Shards <= mean.Shards {
		t.Errorf("with a peak %+v and %d shards, without %+v and %d", peak.Bill, peak.Shards, mean.Bill, mean.Shards)
	}
}

// TestChangesHaveAllPrices: an edge without a price is no way to save.
func TestChangesHaveAllPrices(t *testing.T) {
	in := input(t, 1e5)
	in.Edge.Value = EdgeHTTP
	prices := *in.Prices
	prices.Edges = slices.DeleteFunc(slices.Clone(prices.Edges), func(e EdgePrice) bool { return e.Edge == EdgeRest })
	in.Prices = &prices
	for _, s := range made(t, in).Sensitivities {
		if strings.Contains(s.Change, EdgeRest) {
			t.Errorf("%+v has no price", s)
		}
	}
}

// TestLeftOut: parts without a price are named and not in the total, and are in it with a price.
func TestLeftOut(t *testing.T) {
	in := input(t, 1e6)
	in.Metrics.Value, in.Limits.Value = MetricsEMF, 4
	p := made(t, in)
	if p.Bill.Proxies != nil || p.Bill.Metrics != nil || len(p.LeftOut) != 2 || p.Bill.Total != *p.Bill.Store+*p.Bill.Edge+*p.Bill.CrossZone {
		t.Errorf("left out %q of %+v", p.LeftOut, p.Bill)
	}
	prices := *in.Prices
	prices.Proxy, prices.EMF, prices.Transfer = &ProxyPrice{USDPerHour: 0.15}, &EMFPrice{USDPerGB: 0.5, USDPerMetric: 0.3}, nil
	in.Prices = &prices
	p = made(t, in)
	// 5 proxies x 5 lines of 600 B a second are 38.88 GB; 21 metrics.
	if !near(p.Bill.Proxies, 5*730*0.15) || !near(p.Bill.Metrics, 38.88*0.5+21*0.3) || p.Bill.CrossZone != nil || len(p.LeftOut) != 1 {
		t.Errorf("left out %q of %+v", p.LeftOut, p.Bill)
	}
}

// TestChoice: without a name the node is the cheapest one that is known to carry the load.
func TestChoice(t *testing.T) {
	for name, test := range map[string]struct {
		change func(in *Input)
		want   string
	}{
		"CPU":                      {func(*Input) {}, "cache.m7g.large"},
		"memory":                   {func(in *Input) { in.Tenants.Value = 1e9 }, "cache.r7g.large"},
		"TLS":                      {func(in *Input) { in.TLS.Value = TLSOn }, "cache.m7g.large"},
		"TLS, dear on two threads": {func(in *Input) { in.TLS.Value, in.StoreTLS.Value = TLSOn, 4 }, "cache.r7g.xlarge"},
	} {
		in := input(t, 1e6)
		test.change(in)
		if p := made(t, in); p.Node != test.want {
			t.Errorf("%s: %s, want %s", name, p.Node, test.want)
		}
	}
}

// TestWarnings: the plan names what more shards do not help against.
func TestWarnings(t *testing.T) {
	for want, change := range map[string]func(in *Input){
		"one shard decides 88,235.294/s: no number of shards helps": func(in *Input) { in.TopRate.Value = 100_000 },
		"each node would have 5,000,000 connections":                func(in *Input) { in.Connections.Value = 1e6 },
		"measure it by limitgate doctor --redis-tls":                func(in *Input) { in.TLS.Value = TLSOn },
		"network is not checked":                                    func(in *Input) { in.Node.Value = "cache.c7gn.large" },
		"only for a part of the time":                               func(in *Input) { in.Node.Value = "cache.t4g.small" },
		"92 nodes: ElastiCache has at most 90 in a cluster unless":  func(in *Input) { in.PeakRPS.Value = 4e6 },
		"590 nodes: ElastiCache has at most 500 in a cluster":       func(in *Input) { in.PeakRPS.Value = 26e6 },
	} {
		in := input(t, 1e6)
		if p := made(t, in); len(p.Warnings) != 0 {
			t.Errorf("warnings without a reason: %q", p.Warnings)
		}
		change(in)
		if p := made(t, in); !strings.Contains(strings.Join(p.Warnings, "\n"), want) {
			t.Errorf("no %q in %q", want, p.Warnings)
		}
	}
}

// TestSensitivities: the changes are in the order of their amounts, each that of a plan of its own.
func TestSensitivities(t *testing.T) {
	in := input(t, 1e6)
	in.Edge.Value = EdgeRest
	p := made(t, in)
	if p.Sensitivities[0].Change != "edge none" || p.Sensitivities[0].MonthlyUSD > 10_000 {
		t.Errorf("the edge is not first: %+v", p.Sensitivities)
	}
	for i, s := range p.Sensitivities {
		if i > 0 && math.Abs(s.Difference) > math.Abs(p.Sensitivities[i-1].Difference) || math.Abs(s.MonthlyUSD-s.Difference-p.Bill.Total) > 0.01 {
			t.Errorf("%d: %+v of %v", i, s, p.Bill.Total)
		}
		if s.Change == "proxies too small to batch calls (38.1 us a call, hot-fleet)" && s.Shards != 64 {
			t.Errorf("%+v", s)
		}
	}
	if in.RPS.Value != 1e6 || len(in.Request.Calls) != 1 || in.CallCPU.Value != 6.80 {
		t.Error("the input was changed")
	}
}

// TestBadInputs: inputs without a meaning are errors.
func TestBadInputs(t *testing.T) {
	for name, change := range map[string]func(in *Input){
		"no load":        func(in *Input) { in.RPS.Value = 0 },
		"peak":           func(in *Input) { in.PeakRPS.Value = 1 },
		"NaN":            func(in *Input) { in.Tenants.Value = math.NaN() },
		"infinite":       func(in *Input) { in.CallCPU.Value = math.Inf(1) },
		"below zero":     func(in *Input) { in.Replicas.Value = -1 },
		"no utilisation": func(in *Input) { in.Utilisation.Value = 0 },
		"share":          func(in *Input) { in.LocalShare.Value = 1.1 },
		"no cores":       func(in *Input) { in.ProxyCores.Value = 0 },
		"no memory":      func(in *Input) { in.UsableMemory.Value = 0 },
		"no prices":      func(in *Input) { in.Prices = nil },
		"unknown node":   func(in *Input) { in.Node.Value = "cache.x1.large" },
		"no such engine": func(in *Input) { in.Engine.Value = "memcached" },
		"too many keys":  func(in *Input) { in.Tenants.Value, in.Values.Value, in.Stored.Keys = 1e15, 1e15, 1 },
		"too many calls": func(in *Input) { in.PeakRPS.Value, in.CallCPU.Value = 1e15, 1e15 },
		"too many bytes": func(in *Input) { in.PeakRPS.Value, in.SentBytes.Value, in.CallCPU.Value = 1e15, 1e15, 0 },
		"proxies":        func(in *Input) { in.PeakRPS.Value, in.CallCPU.Value = 1e15, 0 },
	} {
		in := input(t, 1e6)
		change(in)
		if p, err := Make(in); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestHeaviest: all requests are taken for the kind with the most CPU.
func TestHeaviest(t *testing.T) {
	in := input(t, 1e6)
	in.Kinds = []Request{{Kind: "a", Calls: []Call{{Fields: 3}}}, {Kind: "b", Calls: []Call{{Fields: 1}, {Keys: 1}}}, {Kind: "c", Local: 9}}
	if in.Heaviest(); in.Request.Kind != "b" {
		t.Errorf("got %+v", in.Request)
	}
}

// TestEveryInputIsPrinted: every number of the input has a line of the report with its origin,
// and a key in JSON.
func TestEveryInputIsPrinted(t *testing.T) {
	in := input(t, 12_345)
	p := made(t, in)
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range in.Numbers() {
		if n.Origin == "" || !strings.Contains(b.String(), n.Name) || !strings.Contains(b.String(), n.origin()) {
			t.Errorf("%s is not in the report, or has no origin", n.Name)
		}
	}
	if got := strings.Count(string(content), `"origin":`); got != len(in.Numbers())+5 {
		t.Errorf("%d inputs in JSON, %d numbers and 5 words in the report", got, len(in.Numbers()))
	}
	for _, want := range []string{`"monthly_usd":{"total":`, `"cross_az":`, `"prices":{"date":"2026-10-02"`, `"rps":{"value":12345,"unit":"/s","origin":"given"}`} {
		if !strings.Contains(string(content), want) {
			t.Errorf("no %s in %s", want, content)
		}
	}
}
