package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// The marks of the block of a page that updatePage replaces.
const (
	blockBegin = "<!-- Main figures, written by `make bench-docs` -->\n"
	blockEnd   = "<!-- End of the main figures -->\n"
)

// mainPairs are the cases of two sides in the block. They have a figure "throughput".
var mainPairs = []string{
	"redis-p1", "redis-p16", "cluster-p1", "cluster-p16", "hot-p16", "redis-rate", "redis-rate-go", "memory-p16",
	"lease-auto-zipf", "tls-p16", "tls-redis-p16",
}

// caseFigure names a figure of a case.
type caseFigure struct{ name, figure string }

// mainFigures are the single figures in the block.
var mainFigures = []caseFigure{
	{"latency-1", "added p50"},
	{"latency-1", "added p99"},
	{"redis-p1", "CPU of Redis"},
	{"redis-p16", "CPU of proxy and Redis"},
	{"hot-p16", "granted of 5,000 units"},
	{"drift", "highest drift at the end of any rush"},
	{"lease-auto-zipf", "decided from leases"},
	{"denied-flood", "reads and writes in Redis per bucket and begun second"},
	{"failover", "error replies"},
	{"failover", "from the kill until the store decides all again"},
	{"head-of-line", "other masters' tenants: p99, with pauses to without"},
	{"head-of-line", "connections to all tenants: p99 with pauses"},
	{"memory-million", "resident memory at most"},
	{"idle-connections", "resident memory per connection"},
	{"bucket-bytes", "token bucket by tenant, 1,000,000 keys: MEMORY USAGE"},
}

// updatePage returns a page with the report's figures in its block. A report without one
// of the cases or figures is refused, so that a renamed one is noticed.
func (r *Report) updatePage(page []byte, pairs []string, figures []caseFigure) ([]byte, error) {
	before, rest, begun := bytes.Cut(page, []byte(blockBegin))
	_, after, ended := bytes.Cut(rest, []byte(blockEnd))
	if !begun || !ended {
		return nil, errors.New("find main figures: a mark is missing")
	}
	costs, err := r.pairsGrid(pairs)
	if err != nil {
		return nil, err
	}
	others, err := r.mainGrid(figures)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.Write(before)
	text.WriteString(blockBegin + "\n")
	r.writeRun(&text)
	text.WriteByte('\n')
	costs.writeMarkdown(&text)
	text.WriteByte('\n')
	others.writeMarkdown(&text)
	text.WriteString("\n" + blockEnd)
	text.Write(after)
	return text.Bytes(), nil
}

// pairsGrid is the table of the costs of both sides of cases.
func (r *Report) pairsGrid(names []string) (*grid, error) {
	g := &grid{head: []string{
		"case", "beside", "decisions a second", "CPU us: client + proxy + Redis", "throughput", "goal", "", "`make bench`",
	}, left: 2}
	for _, name := range names {
		c, err := r.find(name)
		if err != nil {
			return nil, err
		}
		if c.Error != "" {
			g.add(c.tablesLink(), "", "", "", "", "", "**failed**", c.only())
			continue
		}
		f, err := c.find("throughput")
		if err != nil {
			return nil, err
		}
		if len(c.Sides) != 2 {
			return nil, fmt.Errorf("read case %s: it has %d sides, not 2", name, len(c.Sides))
		}
		a, b := &c.Sides[0], &c.Sides[1]
		g.add(c.tablesLink(), b.Name, grouped(a.PerSecond.Median)+" / "+grouped(b.PerSecond.Median), a.cpuParts()+" / "+b.cpuParts(),
			f.Unit.Format(f.Value.Median), f.goalText(), f.verdictText(), c.only())
	}
	return g, nil
}

// mainGrid is the table of single figures.
func (r *Report) mainGrid(figures []caseFigure) (*grid, error) {
	g := &grid{head: []string{"case", "figure", "measured", "goal", "", "`make bench`"}, left: 2}
	for _, m := range figures {
		c, err := r.find(m.name)
		if err != nil {
			return nil, err
		}
		if c.Error != "" {
			g.add(c.tablesLink(), m.figure, "", "", "**failed**", c.only())
			continue
		}
		f, err := c.find(m.figure)
		if err != nil {
			return nil, err
		}
		g.add(c.tablesLink(), m.figure, f.Unit.Format(f.Value.Median), f.goalText(), f.verdictText(), c.only())
	}
	return g, nil
}

// find returns the result of a case.
func (r *Report) find(name string) (*Result, error) {
	for i := range r.Cases {
		if r.Cases[i].Name == name {
			return &r.Cases[i], nil
		}
	}
	return nil, fmt.Errorf("find case: the report has no %s", name)
}

// find returns a figure.
func (c *Result) find(figure string) (*Figure, error) {
	for i := range c.Figures {
		if c.Figures[i].Name == figure {
			return &c.Figures[i], nil
		}
	}
	return nil, fmt.Errorf("find figure: %s has no %q", c.Name, figure)
}

// tablesLink is a link to the section of the case.
func (c *Result) tablesLink() string { return fmt.Sprintf("[%s](%s#%s)", c.Title, tablesPage, c.Name) }

// only is the argument of make bench that runs the case alone.
func (c *Result) only() string { return "`ONLY=" + c.Name + "`" }

// cpuParts formats the CPU for each decision of the processes of a side.
func (s *SideResult) cpuParts() string {
	parts := []string{number(&s.Client)}
	for _, part := range []*Spread{s.Proxy, s.Store} {
		if part != nil {
			parts = append(parts, number(part))
		}
	}
	return strings.Join(parts, " + ")
}
