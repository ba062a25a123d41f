package limit

import (
	"fmt"
	"strings"

	"github.com/limitgate/limitgate/limit/bucket"
)

// ReasonLacks begins the reason of a limit that counts by a dimension which the request lacks.
const ReasonLacks = "no "

// ReasonRefuses is the reason of a limit with action: deny that a request meets.
const ReasonRefuses = "refuses what it meets"

// ReasonAllows is the reason of an enforced limit that allows a request at every level.
const ReasonAllows = "passes every level"

// ReasonWatches begins the reason of a limit in shadow mode that applies.
const ReasonWatches = "watches"

// Considered is one limit and its effect on a request.
type Considered struct {
	Limit   *Limit
	Applies bool
	Reason  string
}

// Explain lists every limit that the request's tenant has, by Limit.Order within each
// group, with the reason why it applies or does not.
func (s *Set) Explain(req *Request) []Considered {
	rules := s.rules(req.Tenant)
	var b Buffer
	b.choose(rules, req)
	lifting := rules.lifting(req)
	var out []Considered
	for i := range rules.groups {
		var winner, watcher *Limit
		for _, l := range rules.groups[i].candidates {
			if l.isOtherShare(req) {
				continue
			}
			c := Considered{Limit: l}
			c.Applies, c.Reason = consider(l, req, winner, lifting, b.matched)
			if c.Applies && rules.groups[i].slots && req.Hold != HoldSlot {
				c.Applies, c.Reason = false, "only RL.ACQUIRE takes its slots"
			}
			if c.Applies && l.Mode == ModeShadow && l.Action != ActionAllow && !strings.HasPrefix(c.Reason, ReasonWatches) {
				c.Reason = ReasonWatches + ": " + c.Reason
			}
			if c.Applies && l.Mode == ModeShadow {
				if watcher != nil {
					c.Applies, c.Reason = false, watcher.ID+" watches already"
				} else {
					watcher = l
				}
			}
			out = append(out, c)
			if winner == nil && l.Mode == ModeEnforce && l.applies(req) {
				winner = l
			}
		}
	}
	for _, l := range rules.allowing {
		c := Considered{Limit: l}
		c.Applies, c.Reason = consider(l, req, nil, lifting, b.matched)
		out = append(out, c)
	}
	for _, l := range rules.off {
		out = append(out, Considered{Limit: l, Reason: "its mode is off"})
	}
	return out
}

// precedence says why l is more specific than another limit, as compareRank orders them.
func (l *Limit) precedence(other *Limit) string {
	exact, _ := l.specificity()
	otherExact, _ := other.specificity()
	switch {
	case l.layer == layerOverride && other.layer != layerOverride:
		return "it is an override of the tenant"
	case l.layer != other.layer:
		return "it is one of the plan"
	case len(l.when) != len(other.when):
		return "it has more conditions"
	case exact != otherExact:
		return "it has more exact conditions"
	}
	return "its conditions are longer"
}

func consider(l *Limit, req *Request, winner, lifting *Limit, matched []*Limit) (applies bool, reason string) {
	for i := range l.when {
		if !l.when[i].holds(req) {
			return false, "when " + l.when[i].describe() + " does not hold" + l.when[i].whyAbsent(req)
		}
	}
	if lifting != nil && l.Action == ActionLimit {
		return false, "lifted by " + lifting.ID
	}
	if d := l.missing(req); d != nil {
		switch l.Missing {
		case MissingPass:
			return false, d.whyMissing(req, "")
		case MissingDeny:
			return true, d.whyMissing(req, ", which the limit demands")
		}
	}
	if winner != nil && compareRank(winner, l) == 0 {
		return false, winner.ID + " passes it already"
	}
	if winner != nil {
		return false, winner.ID + " is more specific: " + winner.precedence(l)
	}
	if other := replacedBy(l, matched); other != nil {
		return false, "replaced by " + other.ID
	}
	switch {
	case l.everyLevel && l.Mode == ModeShadow:
		return true, "would pass every level"
	case l.everyLevel:
		return true, ReasonAllows
	case l.Action == ActionAllow:
		return true, "passes its level"
	case l.Action == ActionDeny:
		return true, ReasonRefuses
	case l.Mode == ModeShadow && l.share > 0:
		return true, ReasonWatches + ": its bucket is not in the enforced share"
	case l.Mode == ModeShadow:
		return true, ReasonWatches
	case len(l.when) > 0:
		return true, "most specific of its level"
	default:
		return true, "applies to all of its level"
	}
}

func (c *condition) describe() string { return c.name + ": " + c.text }

// DescribeLevel returns the dimensions that l counts by, and its group: "tenant, op (group quota)". A limit that allows
// without by has "every level".
func (l *Limit) DescribeLevel() string {
	if l.everyLevel {
		return "every level"
	}
	level := strings.Join(l.Level(), ", ")
	if l.Group != "" {
		level += " (group " + l.Group + ")"
	}
	return level
}

// When returns the conditions of l as in a limits file.
func (l *Limit) When() []string {
	var out []string
	for i := range l.when {
		out = append(out, l.when[i].describe())
	}
	return out
}

// Describe describes the limit in one line: its rate, its burst and the cost that it declares, or its action.
func (l *Limit) Describe() string {
	switch text := l.describeRate(); {
	case l.FixedCost > 0:
		return fmt.Sprintf("%s, cost %d", text, l.FixedCost)
	case l.MaxCost > 0:
		return fmt.Sprintf("%s, max_cost %d", text, l.MaxCost)
	default:
		return text
	}
}

// describeRate describes the rate and the burst of l, or its action.
func (l *Limit) describeRate() string {
	if l.Action != ActionLimit {
		return l.Action.String()
	}
	var b strings.Builder
	b.WriteString(l.Rate.Text)
	if l.Params.Algorithm == bucket.AlgorithmTokenBucket {
		burst := l.Params.Capacity
		if l.Divided() {
			burst = l.Undivided.Capacity
		}
		fmt.Fprintf(&b, " burst %d", burst)
	}
	if l.Zone != nil {
		b.WriteString(" " + l.Zone.String())
	}
	if l.Divided() {
		fmt.Fprintf(&b, ", %d of it in this cell", l.Rate.Count)
	}
	return b.String()
}

// mostDeclaredNamed bounds the declared values that a reason names.
const mostDeclaredNamed = 5

// whyMissing returns the reason of a limit that counts by a dimension which a request does not have, or of which it
// has a value that is not declared. Demands follows the name of the dimension.
func (d *dimension) whyMissing(req *Request, demands string) string {
	for i := range d.choices {
		p := &d.choices[i]
		if value := p.sent(req); value != "" && !p.declared(value) {
			values := keys(p.values)
			named, others := values[:min(len(values), mostDeclaredNamed)], ""
			if len(values) > len(named) {
				others = " and " + countOthers(len(values)-len(named))
			}
			return ReasonLacks + "declared " + p.name + demands + ": " + Quote(value) + " is none of " + strings.Join(named, ", ") + others + DidYouMean(value, values)
		}
	}
	if demands != "" {
		demands += d.addition()
	}
	return ReasonLacks + d.text + demands
}

// addition returns the end of a sentence about a request without the dimension: the words of a command to
// add, or "" for an address and a chain.
func (d *dimension) addition() string {
	if len(d.choices) != 1 || d.choices[0].kind != propertyExtra {
		return ""
	}
	return ": add DIM " + d.choices[0].name + " VALUE"
}

// whyAbsent returns the end of a sentence about a condition on a dimension that the request does not
// have, or "".
func (p *property) whyAbsent(req *Request) string {
	if _, carried := req.Dimension(p.name); carried || p.kind != propertyExtra {
		return ""
	}
	return ": the request has no DIM " + p.name
}
