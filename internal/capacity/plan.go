package capacity

import (
	"fmt"
	"slices"
	"strings"
)

// Bound is the number of shards that one resource needs.
type Bound struct {
	Resource string `json:"resource"`
	Shards   int    `json:"shards"`
	// Text is the computation for people.
	Text string `json:"text"`
}

// The resources that bound the number of shards.
const (
	BoundCPU         = "cpu"
	BoundNetwork     = "network"
	BoundMemory      = "memory"
	BoundConnections = "connections"
)

// Plan is what a load needs, and costs.
type Plan struct {
	Shards int `json:"shards"`
	// DecidedBy is the resource that needs so many shards.
	DecidedBy string  `json:"decided_by"`
	Bounds    []Bound `json:"bounds"`
	Node      string  `json:"node"`
	Replicas  int     `json:"replicas"`
	Nodes     int     `json:"nodes"` // masters and replicas
	Proxies   int     `json:"proxies"`
	// ProxiesNeeded is the number without the one that may fail.
	ProxiesNeeded int `json:"proxies_needed"`
	// CallsPerSecond is the number of calls to the store at the peak, and CallsPerLink the
	// part of it from each proxy to each shard.
	CallsPerSecond float64 `json:"calls_per_second"`
	CallsPerLink   float64 `json:"calls_per_second_from_a_proxy_to_a_shard"`
	// CPUPerRequest is the processor time of masters for a request, in microseconds.
	CPUPerRequest float64 `json:"cpu_us_per_request"`
	// TenantCeiling is the number of requests a second with the same buckets that one shard
	// decides, and 0 if none of them asks the store: neither a bucket nor a tenant's buckets are
	// divided. Equal requests of one batch are one call, so it may be more.
	TenantCeiling float64 `json:"requests_per_second_of_one_tenant"`
	Bill          Bill    `json:"monthly_usd"`
	// LeftOut lists the costs that are not in the bill, and Warnings what the plan does not cover.
	LeftOut       []string      `json:"left_out"`
	Warnings      []string      `json:"warnings"`
	Sensitivities []Sensitivity `json:"sensitivities,omitempty"`
	Prices        PricesOf      `json:"prices"`
	Inputs        *Input        `json:"inputs"`
}

// PricesOf identifies the prices of a plan.
type PricesOf struct {
	Date   string `json:"date"`
	Region string `json:"region"`
	Source string `json:"source"`
}

// Make makes a plan, with the changes that would change its bill most.
func Make(in *Input) (*Plan, error) {
	p, err := compute(in)
	if err != nil {
		return nil, err
	}
	p.Sensitivities = sensitivities(in, p)
	return p, nil
}

// compute makes a plan without sensitivities.
func compute(in *Input) (*Plan, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	node, err := in.choose()
	if err != nil {
		return nil, err
	}
	p := &Plan{
		Node: node.Type, Replicas: int(in.Replicas.Value), Inputs: in,
		Prices:  PricesOf{Date: in.Prices.Date, Region: in.Prices.Region, Source: in.Prices.Source},
		LeftOut: []string{}, Warnings: []string{},
	}
	asked := 1 - in.LocalShare.Value
	p.CallsPerSecond = in.PeakRPS.Value * asked * float64(len(in.Request.Calls))
	p.CPUPerRequest = asked * in.requestCPU(node)
	p.ProxiesNeeded = max(1, roundUp(in.PeakRPS.Value*in.ProxyCPU.Value/1e6/in.ProxyCores.Value/in.Utilisation.Value))
	p.Proxies = p.ProxiesNeeded + 1
	p.Bounds = in.bounds(node, p.Proxies)
	for _, b := range p.Bounds {
		if b.Shards > p.Shards {
			p.Shards, p.DecidedBy = b.Shards, b.Resource
		}
	}
	if p.Shards > maxParts || p.Proxies > maxParts {
		return nil, fmt.Errorf("the load needs more than %s shards or proxies, which no plan has", count(maxParts))
	}
	p.Nodes = p.Shards * (1 + p.Replicas)
	p.CallsPerLink = p.CallsPerSecond / float64(p.Proxies) / float64(p.Shards)
	if cpu := asked * in.dearestCall(node); cpu > 0 {
		p.TenantCeiling = in.Utilisation.Value * 1e6 / cpu
	}
	p.Bill = in.bill(p)
	p.warn(in, node)
	return p, nil
}

// Heaviest makes Request the kind of request that takes the most processor time of masters.
func (in *Input) Heaviest() {
	for i := range in.Kinds {
		if i == 0 || in.callsCPU(in.Kinds[i].Calls) > in.callsCPU(in.Request.Calls) {
			in.Request = in.Kinds[i]
		}
	}
}

// requestCPU is the processor time that masters take for a request, in microseconds.
func (in *Input) requestCPU(node *NodeType) float64 {
	us := in.callsCPU(in.Request.Calls)
	if in.encrypts(node) {
		us *= in.StoreTLS.Value
	}
	return us
}

// callsCPU is the processor time that masters take for calls without TLS, in microseconds.
func (in *Input) callsCPU(calls []Call) (us float64) {
	for _, c := range calls {
		fields, keys := max(0, c.Fields-1), c.Keys
		if c.Fields == 0 {
			keys = max(0, keys-1)
		}
		us += in.CallCPU.Value + float64(fields)*in.FieldCPU.Value + float64(keys)*in.KeyCPU.Value
	}
	return us
}

// dearestCall is the processor time of a master for the dearest call of a request, in microseconds.
func (in *Input) dearestCall(node *NodeType) (us float64) {
	for _, c := range in.Request.Calls {
		us = max(us, in.callsCPU([]Call{c}))
	}
	if in.encrypts(node) {
		us *= in.StoreTLS.Value
	}
	return us
}

// encrypts reports whether a node encrypts in the thread that runs scripts.
func (in *Input) encrypts(node *NodeType) bool { return in.TLS.Value == TLSOn && !node.TLSOffload }

// bytesOf is a number of bytes of the calls of a request.
func (in *Input) bytesOf(call, more Number) (bytes float64) {
	for _, c := range in.Request.Calls {
		bytes += call.Value + float64(c.buckets()-1)*more.Value
	}
	return bytes
}

// memory is the memory of all buckets, and keys their number of keys.
func (in *Input) memory() (bytes, keys float64) {
	tenants := in.Tenants.Value
	if s := in.Stored.Fields; s > 0 {
		keys = tenants
		bytes = tenants * (in.StringBytes.Value + float64(s-1)*in.FieldBytes.Value)
	}
	own := tenants * (float64(in.Stored.Single) + float64(in.Stored.Keys)*in.Values.Value)
	return bytes + own*in.KeyBytes.Value, keys + own
}

// gib and gbit are the units of memory and of networks.
const (
	gib  = 1 << 30
	gbit = 1e9 / 8
)

// bounds returns the number of shards that each resource needs.
func (in *Input) bounds(node *NodeType, proxies int) []Bound {
	asked, target := in.PeakRPS.Value*(1-in.LocalShare.Value), in.Utilisation.Value
	us := in.requestCPU(node)
	bounds := []Bound{{
		BoundCPU, max(1, roundUp(asked*us/1e6/target)),
		fmt.Sprintf("%s requests/s x %s us / %s of one thread", count(asked), count(us), count(target)),
	}}
	network := Bound{BoundNetwork, 0, "not checked: the baseline of " + node.Type + " is not known"}
	if node.Gbps > 0 {
		in1 := in.bytesOf(in.SentBytes, in.MoreSent)
		out := in.bytesOf(in.ReceivedBytes, in.MoreReceived) + in.Replicas.Value*in.bytesOf(in.ReplicaBytes, in.MoreReplicaBytes)
		need := asked * max(in1, out)
		network.Shards = max(1, roundUp(need/(node.Gbps*gbit*target)))
		network.Text = fmt.Sprintf("%s MB/s of a baseline of %s Gbit/s x %s", count(need/1e6), count(node.Gbps), count(target))
	}
	memory := Bound{BoundMemory, 0, "not checked: the memory of " + node.Type + " is not known"}
	if bytes, keys := in.memory(); node.MemoryGiB > 0 {
		memory.Shards = max(1, roundUp(bytes/(node.MemoryGiB*gib*in.UsableMemory.Value)))
		memory.Text = fmt.Sprintf("%s keys, %s GiB of %s GiB x %s", count(keys), count(bytes/gib), count(node.MemoryGiB), count(in.UsableMemory.Value))
	}
	conns := float64(proxies) * in.Connections.Value
	connections := Bound{BoundConnections, 1, fmt.Sprintf("%s of at most %s at each node", count(conns), count(in.MaxClients.Value))}
	return append(bounds, network, memory, connections)
}

// choose returns the given node type, or the cheapest one that carries the load.
func (in *Input) choose() (*NodeType, error) {
	engine := in.Engine.Value
	if name := in.Node.Value; name != "" {
		if in.Prices.node(name, engine) == nil {
			return nil, fmt.Errorf("there is no price of node %.64s with %s: known are %s; --prices FILE has others", name, engine, in.known())
		}
		return in.Prices.nodeType(name), nil
	}
	var best *NodeType
	cheapest := 0.0
	for i := range in.Prices.NodeTypes {
		node := &in.Prices.NodeTypes[i]
		price := in.Prices.node(node.Type, engine)
		if price == nil || node.Burstable || node.Gbps == 0 || node.MemoryGiB == 0 {
			continue
		}
		shards := 0
		for _, b := range in.bounds(node, 1) {
			shards = max(shards, b.Shards)
		}
		if usd := float64(shards) * price.USDPerHour; best == nil || usd < cheapest {
			best, cheapest = node, usd
		}
	}
	if best == nil {
		return nil, fmt.Errorf("no node type with %s has a price, a network and a memory: name one by --node, of %s", engine, in.known())
	}
	return best, nil
}

// known lists the node types that have a price with the engine.
func (in *Input) known() string {
	var names []string
	for _, n := range in.Prices.Nodes {
		if n.Engine == in.Engine.Value {
			names = append(names, n.Type)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// The nodes that a cluster of ElastiCache has at most, as usual and when AWS raises it.
const (
	usualClusterNodes = 90
	clusterNodes      = 500
)

// warn adds the warnings of a plan.
func (p *Plan) warn(in *Input, node *NodeType) {
	add := func(format string, args ...any) { p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...)) }
	if conns := float64(p.Proxies) * in.Connections.Value; conns > in.MaxClients.Value {
		add("each node would have %s connections, above its %s: no number of shards helps; use fewer, larger proxies", count(conns), count(in.MaxClients.Value))
	}
	if top := in.TopRate.Value; p.TenantCeiling > 0 && top > p.TenantCeiling {
		add("a limit admits %s/s in one bucket, and one shard decides %s/s: no number of shards helps; give it lease: auto or store: auto-local", count(top), count(p.TenantCeiling))
	}
	if in.encrypts(node) && in.StoreTLS.Value != 1 {
		add("%s encrypts in the thread that runs scripts, and the CPU per call was measured without TLS: measure it by limitgate doctor --redis-tls --measure FILE", node.Type)
	}
	if p.Nodes > clusterNodes {
		add("%s nodes: ElastiCache has at most %d in a cluster: divide the tenants among several stores, or let leases decide more", count(float64(p.Nodes)), clusterNodes)
	} else if p.Nodes > usualClusterNodes {
		add("%d nodes: ElastiCache has at most %d in a cluster unless AWS raises that, to %d", p.Nodes, usualClusterNodes, clusterNodes)
	}
	if node.Burstable {
		add("%s may use its processors only for a part of the time: this plan takes all of it", node.Type)
	}
	for _, b := range p.Bounds {
		if b.Shards == 0 {
			add("%s is %s", b.Resource, b.Text)
		}
	}
}
