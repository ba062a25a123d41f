package capacity

import "fmt"

// HoursPerMonth is the length of a month of machines, as AWS counts it, and SecondsPerMonth of
// requests: 30 days.
const (
	HoursPerMonth   = 730
	SecondsPerMonth = 30 * 24 * 3600
)

// emfBytes is the length of a line of EMF, and processMetrics the number of metrics that a
// service has beside three for each limit.
const (
	emfBytes       = 600
	processMetrics = 9
)

// Bill is the monthly bill. Parts that are nil have no price, and are not in the total.
type Bill struct {
	Total     float64  `json:"total"`
	Store     *float64 `json:"store"`
	Proxies   *float64 `json:"proxies"`
	Edge      *float64 `json:"edge"`
	Metrics   *float64 `json:"metrics"`
	CrossZone *float64 `json:"cross_az"`

	lines []billLine
}

// billLine is a line of the bill for people.
type billLine struct {
	part, text string
	usd        *float64
}

// add adds a part to the bill.
func (b *Bill) add(part, text string, usd *float64) *float64 {
	b.lines = append(b.lines, billLine{part, text, usd})
	if usd != nil {
		b.Total += *usd
	}
	return usd
}

// bill makes the bill of a plan.
func (in *Input) bill(p *Plan) (b Bill) {
	price := in.Prices.node(p.Node, in.Engine.Value)
	b.Store = b.add("store", fmt.Sprintf("%d x %s, %s, %d h x $%v", p.Nodes, p.Node, in.Engine.Value, HoursPerMonth, price.USDPerHour),
		new(float64(p.Nodes)*HoursPerMonth*price.USDPerHour))
	b.Proxies = in.billProxies(p, &b)
	b.Edge = in.billEdge(p, &b)
	b.Metrics = in.billMetrics(p, &b)
	b.CrossZone = in.billTransfer(p, &b)
	return b
}

// leaveOut adds a part without a price.
func (p *Plan) leaveOut(b *Bill, part, text string) *float64 {
	p.LeftOut = append(p.LeftOut, part+": "+text)
	return b.add(part, text, nil)
}

func (in *Input) billProxies(p *Plan, b *Bill) *float64 {
	price := in.Prices.Proxy
	if price == nil {
		return p.leaveOut(b, "proxies", fmt.Sprintf("%d x %s processors, without a price", p.Proxies, count(in.ProxyCores.Value)))
	}
	return b.add("proxies", fmt.Sprintf("%d x %s processors, %d h x $%v", p.Proxies, count(in.ProxyCores.Value), HoursPerMonth, price.USDPerHour),
		new(float64(p.Proxies)*HoursPerMonth*price.USDPerHour))
}

func (in *Input) billEdge(p *Plan, b *Bill) *float64 {
	edge := in.Edge.Value
	if edge == EdgeNone {
		return b.add("edge", "none", new(0.0))
	}
	requests := in.RPS.Value * SecondsPerMonth
	text := fmt.Sprintf("%s, %s requests", edge, millions(requests))
	price := in.Prices.edge(edge)
	if price == nil {
		return p.leaveOut(b, "edge", text+", without a price")
	}
	return b.add("edge", text, new(price.Month(requests)))
}

func (in *Input) billMetrics(p *Plan, b *Bill) *float64 {
	if in.Metrics.Value != MetricsEMF {
		return p.leaveOut(b, "metrics", in.Metrics.Value+", whose servers have no price here")
	}
	gb := float64(p.Proxies) * (in.Limits.Value + 1) * emfBytes * SecondsPerMonth / 1e9
	metrics := 3*in.Limits.Value + processMetrics
	text := fmt.Sprintf("emf, %s GB of log and %s metrics", count(float64(roundUp(gb))), count(metrics))
	price := in.Prices.EMF
	if price == nil {
		return p.leaveOut(b, "metrics", text+", without a price")
	}
	return b.add("metrics", text, new(gb*price.USDPerGB+metrics*price.USDPerMetric))
}

func (in *Input) billTransfer(p *Plan, b *Bill) *float64 {
	perRequest := in.CrossZone.Value*(in.bytesOf(in.SentBytes, in.MoreSent)+in.bytesOf(in.ReceivedBytes, in.MoreReceived)) +
		in.Replicas.Value*in.bytesOf(in.ReplicaBytes, in.MoreReplicaBytes)
	gb := in.RPS.Value * (1 - in.LocalShare.Value) * perRequest * SecondsPerMonth / 1e9
	text := count(float64(roundUp(gb))) + " GB between zones"
	price := in.Prices.Transfer
	if price == nil {
		return p.leaveOut(b, "cross-AZ", text+", without a price")
	}
	return b.add("cross-AZ", fmt.Sprintf("%s x $%v", text, price.USDPerGB), new(gb*price.USDPerGB))
}

// millions formats a number of requests in millions.
func millions(n float64) string { return count(n/1e6) + " M" }
