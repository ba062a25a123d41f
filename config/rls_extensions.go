package config

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// RLSExtensions is a file that gives limits of envoyproxy/ratelimit's files what those cannot say. Only
// its shape is checked: the limits that it extends are in other files.
type RLSExtensions struct {
	File    string
	Domains []RLSDomain
	version limit.Text
}

// RLSDomain extends a domain. OnError and OnDenied count for all of its limits.
type RLSDomain struct {
	Name              limit.Text
	OnError, OnDenied limit.Text
	TenantKey         limit.Text // the key whose value is the tenant
	Rules             []RLSRule
}

// RLSRule extends the limits of a path, which is that of rlsconfig.Rule.
type RLSRule struct {
	Path     limit.Text
	Spec     limit.RuleSpec
	OnDenied limit.Text
	// Calendar is true for windows that begin with days or months of the calendar.
	Calendar limit.Text
	// Also are further limits of the same requests, each with an id.
	Also []limit.RuleSpec
}

// MaxRLSExtensionsBytes bounds the file: some hundred bytes for each of 10,000 limits.
const MaxRLSExtensionsBytes = 4 << 20

var rlsExtensionsBounds = bounds{kind: "extensions", most: MaxRLSExtensionsBytes}

var rlsExtensionsFields = fields[RLSExtensions]{
	"version": text(func(x *RLSExtensions) *limit.Text { return &x.version }),
	"domains": func(d *limitsDecoder, x *RLSExtensions, n *yaml.Node, field string) {
		d.entries(n, field, func(key, value *yaml.Node, field string) {
			domain := RLSDomain{Name: textOf(key)}
			mapping(d, &domain, rlsDomainFields, value, field)
			x.Domains = append(x.Domains, domain)
		})
	},
}

var rlsDomainFields = fields[RLSDomain]{
	"on_error":   text(func(x *RLSDomain) *limit.Text { return &x.OnError }),
	"on_denied":  text(func(x *RLSDomain) *limit.Text { return &x.OnDenied }),
	"tenant_key": text(func(x *RLSDomain) *limit.Text { return &x.TenantKey }),
	"rules": func(d *limitsDecoder, x *RLSDomain, n *yaml.Node, field string) {
		d.entries(n, field, func(key, value *yaml.Node, field string) {
			rule := RLSRule{Path: textOf(key), Spec: limit.RuleSpec{Line: key.Line, ID: textOf(key)}}
			mapping(d, &rule, rlsRuleFields, value, field)
			x.Rules = append(x.Rules, rule)
		})
	},
}

// rlsLimitKeys are the keys of limits that a limit of descriptors may have: what it counts, and how
// much, stands elsewhere.
var rlsLimitKeys = []string{"algorithm", "burst", "on_error", "lease", "timezone"}

var rlsRuleFields = func() fields[RLSRule] {
	all := fields[RLSRule]{
		"on_denied": text(func(x *RLSRule) *limit.Text { return &x.OnDenied }),
		"calendar":  text(func(x *RLSRule) *limit.Text { return &x.Calendar }),
		"also": func(d *limitsDecoder, x *RLSRule, n *yaml.Node, field string) {
			x.Also = d.alsoLimits(n, field)
		},
	}
	for _, key := range rlsLimitKeys {
		read := limitFields[key]
		all[key] = func(d *limitsDecoder, x *RLSRule, n *yaml.Node, field string) { read(d, &x.Spec, n, field) }
	}
	return all
}()

var rlsAlsoFields = func() fields[limit.RuleSpec] {
	all := fields[limit.RuleSpec]{"id": limitFields["id"], "rate": limitFields["rate"]}
	for _, key := range rlsLimitKeys {
		all[key] = limitFields[key]
	}
	return all
}()

// alsoLimits reads a list of further limits.
func (d *limitsDecoder) alsoLimits(n *yaml.Node, field string) (specs []limit.RuleSpec) {
	n = resolveAlias(n)
	if n.Kind != yaml.SequenceNode {
		d.fail(n, field, "a list of limits belongs here: lines that begin with - id: NAME")
		return nil
	}
	for i, item := range n.Content {
		spec := limit.RuleSpec{Line: item.Line}
		mapping(d, &spec, rlsAlsoFields, item, field+"["+strconv.Itoa(i)+"]")
		specs = append(specs, spec)
	}
	return specs
}

// ParseRLSExtensions reads extensions of envoyproxy/ratelimit's files, YAML or JSON of the same shape. Name
// is the file's name in messages. All mistakes are listed at once, as a *limit.Problems.
func ParseRLSExtensions(name string, content []byte) (*RLSExtensions, error) {
	if len(content) > MaxRLSExtensionsBytes {
		return nil, fmt.Errorf("read extensions: %w", rlsExtensionsBounds.tooLarge(name, int64(len(content))))
	}
	d, x := &limitsDecoder{empty: "version: 1 and domains, as in docs/envoy.md"}, &RLSExtensions{File: name}
	root, ok := d.document(content)
	if ok && root.Kind != yaml.MappingNode && !isNull(root) {
		d.fail(root, "", "names with values belong here: version: 1 and domains, as in docs/envoy.md")
		return nil, &limit.Problems{File: name, List: d.problems}
	}
	if ok {
		mapping(d, x, rlsExtensionsFields, root, "")
	}
	if ok && x.version.Value != "1" {
		d.fail(&yaml.Node{Line: max(1, x.version.Line)}, "version", "the file does not say which format it is in: write version: 1")
	}
	if len(d.problems) > 0 {
		return nil, &limit.Problems{File: name, List: d.problems}
	}
	return x, nil
}
