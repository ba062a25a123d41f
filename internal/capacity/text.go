package capacity

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// mostSensitivities and mostKinds bound the sensitivities and the kinds of request that are
// printed: each fits a screen.
const (
	mostSensitivities = 6
	mostKinds         = 12
)

// Write prints the plan for people.
func (p *Plan) Write(w io.Writer) error {
	var b strings.Builder
	in := p.Inputs
	fmt.Fprintf(&b, "%s requests a second, at the peak %s; %s tenants\n", count(in.RPS.Value), count(in.PeakRPS.Value), count(in.Tenants.Value))
	fmt.Fprintf(&b, "prices of %s, %s, US dollars\n\n", p.Prices.Date, p.Prices.Region)
	p.writeNeeds(&b)
	p.writeBill(&b)
	p.writeBounds(&b)
	p.writeSensitivities(&b)
	p.writeInputs(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// columns returns a writer of columns.
func columns(w io.Writer, flags uint) *tabwriter.Writer {
	return tabwriter.NewWriter(w, 0, 0, 2, ' ', flags)
}

func (p *Plan) writeNeeds(b *strings.Builder) {
	in := p.Inputs
	tw := columns(b, 0)
	fmt.Fprintln(tw, "NEEDED\t\t")
	fmt.Fprintf(tw, "shards\t%d\tdecided by %s\n", p.Shards, p.DecidedBy)
	fmt.Fprintf(tw, "nodes\t%d\t%s, %s: a master and %s for each shard\n", p.Nodes, p.Node, in.Engine.Value, replicas(p.Replicas))
	fmt.Fprintf(tw, "proxies\t%d\t%s processors each; one of them may fail\n", p.Proxies, count(in.ProxyCores.Value))
	if p.TenantCeiling > 0 {
		fmt.Fprintf(tw, "one tenant\t-\tat most some %s requests/s: its buckets stay on one shard\n", count(float64(int(p.TenantCeiling))))
	}
	_ = tw.Flush()
	for _, text := range p.Warnings {
		fmt.Fprintf(b, "! %s\n", text)
	}
}

func (p *Plan) writeBill(b *strings.Builder) {
	b.WriteString("\n")
	tw := columns(b, 0)
	fmt.Fprintln(tw, "A MONTH\tUS DOLLARS\tFOR")
	for _, l := range p.Bill.lines {
		amount := "left out"
		if l.usd != nil {
			amount = Dollars(*l.usd)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", l.part, amount, l.text)
	}
	without := ""
	if len(p.LeftOut) > 0 {
		without = "without the lines that are left out; --prices FILE gives their prices"
	}
	fmt.Fprintf(tw, "total\t%s\t%s\n", Dollars(p.Bill.Total), without)
	_ = tw.Flush()
}

func (p *Plan) writeBounds(b *strings.Builder) {
	b.WriteString("\n")
	tw := columns(b, 0)
	fmt.Fprintln(tw, "BOUND\tSHARDS\tBECAUSE")
	for _, bound := range p.Bounds {
		shards := "-"
		if bound.Shards > 0 {
			shards = count(float64(bound.Shards))
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", bound.Resource, shards, bound.Text)
	}
	_ = tw.Flush()
}

func (p *Plan) writeSensitivities(b *strings.Builder) {
	b.WriteString("\n")
	tw := columns(b, 0)
	fmt.Fprintln(tw, "WHAT WOULD CHANGE THE BILL MOST\tSHARDS\tTOTAL\tDIFFERENCE")
	for i, s := range p.Sensitivities {
		if i == mostSensitivities {
			break
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\n", s.Change, s.Shards, Dollars(s.MonthlyUSD), signed(s.Difference))
	}
	_ = tw.Flush()
}

// signed formats a difference in dollars.
func signed(usd float64) string {
	if usd > 0 {
		return "+" + Dollars(usd)
	}
	return Dollars(usd)
}

func (p *Plan) writeInputs(b *strings.Builder) {
	in := p.Inputs
	b.WriteString("\n")
	tw := columns(b, 0)
	p.writeKinds(tw)
	_ = tw.Flush()
	b.WriteString("\n")
	fmt.Fprintln(tw, "INPUT\tVALUE\tORIGIN")
	for _, n := range in.Numbers() {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", n.Name, strings.TrimSpace(count(n.Value)+" "+n.Unit), n.origin())
	}
	for _, c := range []struct {
		name string
		Choice
	}{{"node type", in.Node}, {"engine", in.Engine}, {"TLS", in.TLS}, {"edge", in.Edge}, {"metrics", in.Metrics}} {
		if c.Value == "" {
			c.Value = p.Node + ", the cheapest"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", c.name, c.Value, c.Origin)
	}
	fmt.Fprintf(tw, "prices\t%s\t%s: %s\n", p.Prices.Date, OriginPrices, p.Prices.Source)
	_ = tw.Flush()
}

// writeKinds prints the kinds of request, first the one that the plan is made for.
func (p *Plan) writeKinds(w io.Writer) {
	in := p.Inputs
	fmt.Fprintln(w, "KIND OF REQUEST\tBUCKETS\tCALLS TO THE STORE\tIN THE PROXY\t")
	row := func(k *Request, text string) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", k.Kind, k.Buckets(), len(k.Calls), k.Local, text)
	}
	row(&in.Request, "all requests are taken for this kind")
	printed := 1
	for i := range in.Kinds {
		if in.Kinds[i].Kind == in.Request.Kind {
			continue
		}
		if printed == mostKinds {
			fmt.Fprintf(w, "%d more, which --json lists\t\t\t\t\n", len(in.Kinds)-printed)
			break
		}
		row(&in.Kinds[i], "")
		printed++
	}
}

// origin describes the origin of a number.
func (n Number) origin() string {
	if n.Note == "" {
		return string(n.Origin)
	}
	return string(n.Origin) + " (" + n.Note + ")"
}

// replicas names a number of replicas.
func replicas(n int) string {
	if n == 1 {
		return "a replica"
	}
	return fmt.Sprintf("%d replicas", n)
}
