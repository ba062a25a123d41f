package capacity

import (
	_ "embed"
	"fmt"
	"slices"
	"time"
)

// DefaultPrices is the content of the prices that are built in.
//
//go:embed prices.json
var DefaultPrices []byte

// staleAfter is the age from which on prices have a warning.
const staleAfter = 180 * 24 * time.Hour

// Prices is a dated list of prices.
type Prices struct {
	Date     string `json:"date"` // such as 2026-10-02
	Region   string `json:"region"`
	Currency string `json:"currency"`
	Source   string `json:"source"`
	// NodeTypes are those of the built-in prices if there are none.
	NodeTypes []NodeType     `json:"node_types"`
	Nodes     []NodePrice    `json:"nodes"`
	Edges     []EdgePrice    `json:"edges"`
	Proxy     *ProxyPrice    `json:"proxy"`
	Transfer  *TransferPrice `json:"transfer"`
	EMF       *EMFPrice      `json:"emf"`
}

// NodeType describes a node type. MemoryGiB and Gbps are 0 if they are not known.
type NodeType struct {
	Type      string  `json:"type"`
	Cores     int     `json:"cores"`
	MemoryGiB float64 `json:"memory_gib"`
	Gbps      float64 `json:"gbps"` // its baseline, which it may exceed for a while
	// TLSOffload is whether threads of their own encrypt, and Burstable whether the node may
	// use its processors only for a part of the time.
	TLSOffload bool   `json:"tls_offload"`
	Burstable  bool   `json:"burstable"`
	Source     string `json:"source"`
}

// NodePrice is the price of a node type with an engine.
type NodePrice struct {
	Type       string  `json:"type"`
	Engine     string  `json:"engine"`
	USDPerHour float64 `json:"usd_per_hour"`
	Source     string  `json:"source"`
}

// EdgePrice is the price of requests through an edge.
type EdgePrice struct {
	Edge   string `json:"edge"`
	Tiers  []Tier `json:"tiers"`
	Source string `json:"source"`
}

// Tier is the price of the requests of a month up to a number, behind the tier before; the last
// tier has no such number.
type Tier struct {
	UpTo          float64 `json:"up_to"`
	USDPerMillion float64 `json:"usd_per_million"`
}

// ProxyPrice is the price of the machine or container of one proxy.
type ProxyPrice struct {
	USDPerHour float64 `json:"usd_per_hour"`
	Source     string  `json:"source"`
}

// TransferPrice is the price of traffic between zones.
type TransferPrice struct {
	USDPerGB float64 `json:"usd_per_gb"`
	Source   string  `json:"source"`
}

// EMFPrice is the price of metrics in the embedded metric format, a month.
type EMFPrice struct {
	USDPerGB     float64 `json:"usd_per_gb"`
	USDPerMetric float64 `json:"usd_per_metric"`
	Source       string  `json:"source"`
}

// ParsePrices parses a file of prices. It refuses unknown and repeated keys, and rows without
// a source.
func ParsePrices(content []byte) (*Prices, error) {
	p, err := parsePrices(content)
	if err == nil && len(p.NodeTypes) == 0 {
		var builtIn *Prices
		if builtIn, err = parsePrices(DefaultPrices); err == nil {
			p.NodeTypes = builtIn.NodeTypes
		}
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("parse prices: %w", err)
	}
	return p, nil
}

func parsePrices(content []byte) (*Prices, error) {
	p := new(Prices)
	return p, decode(content, p, "want a file as limitgate plan --print-prices prints, see docs/capacity.md")
}

// Stale reports whether the prices are so old at now that they may have changed.
func (p *Prices) Stale(now time.Time) bool {
	date, err := time.Parse(time.DateOnly, p.Date)
	return err != nil || now.Sub(date) > staleAfter
}

// priced is a row of prices, for check.
type priced struct {
	name, source string
	usd          float64
}

// rows returns all rows, with a name that occurs once.
func (p *Prices) rows() []priced {
	var rows []priced
	for _, n := range p.NodeTypes {
		rows = append(rows, priced{"node type " + n.Type, n.Source, min(n.MemoryGiB, n.Gbps, float64(n.Cores))})
	}
	for _, n := range p.Nodes {
		rows = append(rows, priced{"node " + n.Type + " " + n.Engine, n.Source, n.USDPerHour})
	}
	for _, e := range p.Edges {
		rows = append(rows, priced{name: "edge " + e.Edge, source: e.Source})
	}
	if p.Proxy != nil {
		rows = append(rows, priced{"proxy", p.Proxy.Source, p.Proxy.USDPerHour})
	}
	if p.Transfer != nil {
		rows = append(rows, priced{"transfer", p.Transfer.Source, p.Transfer.USDPerGB})
	}
	if p.EMF != nil {
		rows = append(rows, priced{"emf by GB", p.EMF.Source, p.EMF.USDPerGB}, priced{"emf by metric", p.EMF.Source, p.EMF.USDPerMetric})
	}
	return rows
}

// check returns an error for prices that cannot be used.
func (p *Prices) check() error {
	if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
		return fmt.Errorf("date: %.32q is not a date such as 2026-10-02", p.Date)
	}
	if p.Region == "" || p.Source == "" {
		return fmt.Errorf("region and source are needed: prices without them mean nothing")
	}
	if p.Currency != "USD" {
		return fmt.Errorf("currency: %.32q is not USD", p.Currency)
	}
	seen := map[string]bool{}
	for _, row := range p.rows() {
		switch {
		case seen[row.name]:
			return fmt.Errorf("%s: it is there twice", row.name)
		case row.source == "":
			return fmt.Errorf("%s: source is needed", row.name)
		case row.usd < 0:
			return fmt.Errorf("%s: a number is below zero", row.name)
		case row.usd > maxPrice:
			return fmt.Errorf("%s: a number is above %d", row.name, maxPrice)
		}
		seen[row.name] = true
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if !slices.Contains(Engines, n.Engine) {
			return fmt.Errorf("node %s: %.32q is no engine: write valkey or redis", n.Type, n.Engine)
		}
		if p.nodeType(n.Type) == nil {
			return fmt.Errorf("node %s: node_types does not have it", n.Type)
		}
	}
	return p.checkEdges()
}

// maxPrice bounds prices, and the numbers of node types.
const maxPrice = 1_000_000

// checkEdges returns an error for tiers out of order.
func (p *Prices) checkEdges() error {
	for _, e := range p.Edges {
		if !slices.Contains(Edges[1:], e.Edge) {
			return fmt.Errorf("edge %.32q: there is no such edge", e.Edge)
		}
		before := 0.0
		for i, t := range e.Tiers {
			last := i == len(e.Tiers)-1
			if t.USDPerMillion > maxPrice {
				return fmt.Errorf("edge %s: a number is above %d", e.Edge, maxPrice)
			}
			if t.USDPerMillion < 0 || last != (t.UpTo == 0) || !last && t.UpTo <= before {
				return fmt.Errorf("edge %s: tiers go up, and the last one alone has no up_to", e.Edge)
			}
			before = t.UpTo
		}
		if len(e.Tiers) == 0 {
			return fmt.Errorf("edge %s: it has no tiers", e.Edge)
		}
	}
	return nil
}

// nodeType returns the description of a node type, or nil.
func (p *Prices) nodeType(name string) *NodeType {
	for i := range p.NodeTypes {
		if p.NodeTypes[i].Type == name {
			return &p.NodeTypes[i]
		}
	}
	return nil
}

// node returns the price of a node type with an engine, or nil.
func (p *Prices) node(name, engine string) *NodePrice {
	for i := range p.Nodes {
		if p.Nodes[i].Type == name && p.Nodes[i].Engine == engine {
			return &p.Nodes[i]
		}
	}
	return nil
}

// edge returns the price of an edge, or nil.
func (p *Prices) edge(name string) *EdgePrice {
	for i := range p.Edges {
		if p.Edges[i].Edge == name {
			return &p.Edges[i]
		}
	}
	return nil
}

// Month returns the price of a number of requests in a month.
func (e *EdgePrice) Month(requests float64) (usd float64) {
	before := 0.0
	for _, t := range e.Tiers {
		end := t.UpTo
		if end == 0 || end > requests {
			end = requests
		}
		usd += max(0, end-before) / 1e6 * t.USDPerMillion
		before = max(before, end)
	}
	return usd
}
