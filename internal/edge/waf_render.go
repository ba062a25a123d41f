package edge

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Units of WAF's capacity that statements take. Text that is compared as it is takes no more.
const (
	rateWCU      = 2
	customKeyWCU = 30
	matchWCU     = 2
	ipSetWCU     = 1
)

// wcu returns the capacity that a rule takes, in WCU.
func (r rule) wcu() int {
	n := rateWCU
	if r.header != "" {
		n += customKeyWCU
	}
	matches := len(r.without) * 2 // the method and the path
	if r.op != nil {
		matches += 2
	}
	for _, family := range families(r.outside) {
		if len(family.nets) > 0 {
			n += ipSetWCU
		}
	}
	return n + matches*matchWCU
}

// family are blocks of addresses of one version.
type family struct {
	version string
	nets    []netip.Prefix
}

// families splits blocks as WAF has them: a set has addresses of one version.
func families(nets []netip.Prefix) []family {
	out := []family{{version: "IPV4"}, {version: "IPV6"}}
	for _, net := range nets {
		i := 1
		if net.Addr().Is4() {
			i = 0
		}
		out[i].nets = append(out[i].nets, net)
	}
	return out
}

// render makes the resources of the rules.
func (w *waf) render() {
	if len(w.rules) == 0 {
		return
	}
	w.description = "Rate-based rules that are never stricter than the limits of Limitgate. " + generated
	w.notes = w.wafNotes()
	var rules list
	for i, r := range w.rules {
		rules = append(rules, remarked{r.comment(w.opts.Margin), object{
			{key: "Name", value: ruleName(r.name)},
			{key: "Priority", value: i},
			{key: "Action", value: object{{key: "Block", value: object{}}}},
			{key: "Statement", value: object{{key: "RateBasedStatement", value: w.statement(i, r)}}},
			{key: "VisibilityConfig", value: visible(ruleName(r.name))},
		}})
	}
	w.resources = append(w.resources, field{key: "WebACL", value: object{
		{key: "Type", value: "AWS::WAFv2::WebACL"},
		{key: "Properties", value: object{
			{key: "Description", value: generated},
			{key: "Scope", value: w.opts.Scope},
			{key: "DefaultAction", value: object{{key: "Allow", value: object{}}}},
			{key: "VisibilityConfig", value: visible("limitgate")},
			{key: "Rules", value: rules},
		}},
	}})
	w.outputs = object{{key: "WebACLArn", value: object{{key: "Value", value: object{{key: "Fn::GetAtt", value: list{"WebACL", "Arn"}}}}}}}
}

// generated describes what stacks contain.
const generated = "Written by limitgate edge render"

// comment explains the numbers of a rule.
func (r rule) comment(margin float64) string {
	var parts []string
	for _, l := range r.of.sum[:min(maxNamed, len(r.of.sum))] {
		parts = append(parts, fmt.Sprintf("%s (line %d, %s)", name(l), l.Line, l.Describe()))
	}
	if more := len(r.of.sum) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	text := strings.Join(parts, " and ")
	if r.raised != nil {
		text += fmt.Sprintf(", but no less than %s (line %d, %s)", name(r.raised), r.raised.Line, r.raised.Describe())
	}
	text += fmt.Sprintf(": what is admitted at most in %d s, times %s", r.window, strconv.FormatFloat(margin, 'g', -1, 64))
	if r.least {
		text += fmt.Sprintf(", but no less than WAF's least limit of %d", minRuleLimit)
	}
	return "# " + printable(text)
}

// statement returns the RateBasedStatement of a rule.
func (w *waf) statement(i int, r rule) object {
	out := object{
		{key: "Limit", value: r.limit},
		{key: "EvaluationWindowSec", value: r.window},
	}
	switch {
	case r.header != "":
		out = append(out, field{key: "AggregateKeyType", value: "CUSTOM_KEYS"}, field{key: "CustomKeys", value: list{
			object{{key: "Header", value: object{{key: "Name", value: r.header}, {key: "TextTransformations", value: asItIs}}}},
		}})
	case w.opts.ForwardedIPHeader != "":
		out = append(out, field{key: "AggregateKeyType", value: "FORWARDED_IP"}, field{key: "ForwardedIPConfig", value: object{
			{key: "HeaderName", value: w.opts.ForwardedIPHeader},
			{key: "FallbackBehavior", value: "NO_MATCH"},
		}})
	default:
		out = append(out, field{key: "AggregateKeyType", value: "IP"})
	}
	if down := w.scopeDown(i, r); len(down) == 1 {
		out = append(out, field{key: "ScopeDownStatement", value: down[0]})
	} else if len(down) > 1 {
		out = append(out, field{key: "ScopeDownStatement", value: and(down)})
	}
	return out
}

// scopeDown returns the statements that all hold for the requests of a rule, and adds the sets of
// addresses that they name.
func (w *waf) scopeDown(i int, r rule) (down list) {
	if r.op != nil {
		down = append(down, r.op.statements()...)
	}
	for _, op := range r.without {
		excluded := op.statements()
		if len(excluded) == 1 {
			down = append(down, not(excluded[0]))
			continue
		}
		down = append(down, not(and(excluded)))
	}
	for _, f := range families(r.outside) {
		if len(f.nets) == 0 {
			continue
		}
		id := fmt.Sprintf("Rule%dOutside%s", i, f.version)
		w.resources = append(w.resources, field{key: id, value: w.ipSet(f)})
		set := object{{key: "Arn", value: object{{key: "Fn::GetAtt", value: list{id, "Arn"}}}}}
		if w.opts.ForwardedIPHeader != "" {
			set = append(set, field{key: "IPSetForwardedIPConfig", value: object{
				{key: "HeaderName", value: w.opts.ForwardedIPHeader},
				{key: "FallbackBehavior", value: "NO_MATCH"},
				{key: "Position", value: "FIRST"},
			}})
		}
		down = append(down, not(object{{key: "IPSetReferenceStatement", value: set}}))
	}
	return down
}

func (w *waf) ipSet(f family) object {
	var nets list
	for _, net := range f.nets {
		nets = append(nets, net.String())
	}
	return object{
		{key: "Type", value: "AWS::WAFv2::IPSet"},
		{key: "Properties", value: object{
			{key: "Description", value: generated},
			{key: "Scope", value: w.opts.Scope},
			{key: "IPAddressVersion", value: f.version},
			{key: "Addresses", value: nets},
		}},
	}
}

// statements returns the statements that both hold for an operation.
func (o operation) statements() list {
	out := list{match("Method", o.method, true)}
	if o.path != "" {
		out = append(out, match("UriPath", o.path, o.exact))
	}
	return out
}

// match returns a statement on a part of a request.
func match(part, text string, exact bool) object {
	constraint := "STARTS_WITH"
	if exact {
		constraint = "EXACTLY"
	}
	return object{{key: "ByteMatchStatement", value: object{
		{key: "FieldToMatch", value: object{{key: part, value: object{}}}},
		{key: "PositionalConstraint", value: constraint},
		{key: "SearchString", value: text},
		{key: "TextTransformations", value: asItIs},
	}}}
}

var asItIs = list{object{{key: "Priority", value: 0}, {key: "Type", value: "NONE"}}}

func and(statements list) object {
	return object{{key: "AndStatement", value: object{{key: "Statements", value: statements}}}}
}

func not(statement any) object {
	return object{{key: "NotStatement", value: object{{key: "Statement", value: statement}}}}
}

func visible(metric string) object {
	return object{
		{key: "CloudWatchMetricsEnabled", value: true},
		{key: "MetricName", value: metric},
		{key: "SampledRequestsEnabled", value: true},
	}
}

// ruleName returns a name in WAF's alphabet, which lacks the dot of ids.
func ruleName(id string) string { return "limitgate-" + strings.ReplaceAll(id, ".", "_") }

func (w *waf) wafNotes() []string {
	notes := []string{
		"WAF counts requests in the last seconds of a window, approximately and some seconds late. A client",
		"above the limit of a rule is blocked, all of its requests, until its rate is below; Limitgate goes on",
		"admitting what the limit admits. WAF counts each request that its resource receives as one, whatever",
		"it costs: also requests that Limitgate is not asked about, that it denies, that have a token to",
		"bypass limits, or whose units RL.COMMIT, RL.CANCEL or RL.REFUND return. --margin has to cover these,",
		"and what proxies admit while their store is unavailable. Limitgate counts IPv6 addresses by their",
		"first 64 bits (--privacy-ipv6-prefix), WAF may count each. A change of a rule begins its counts anew.",
		"A rule for a path takes an op for a method and a path: POST /path. No request with that method and",
		"path may have another op.",
		"",
	}
	if w.opts.Scope == ScopeCloudFront {
		notes = append(notes, "Create the stack in us-east-1. The distribution names WebACLArn as its WebACLId.")
	} else {
		notes = append(notes, "Associate WebACLArn with a load balancer or a stage by an AWS::WAFv2::WebACLAssociation.")
	}
	if header := w.opts.ForwardedIPHeader; header != "" {
		notes = append(notes, "WAF takes the first address in "+header+", and does not count requests without one: let what",
			"stands in front overwrite the header, and nothing else reach the resource.")
	}
	return notes
}
