package rlsconfig

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// Options are the settings with which a configuration is compiled.
type Options struct {
	// MergeDomains lets several files or resources describe one domain, as MERGE_DOMAIN_CONFIG
	// does. Their order is that of patterns, and no descriptor may be in two of them.
	MergeDomains bool
	// Prefix is part of the name of each counter, so that those of two configurations with
	// different prefixes never share a name. It may be empty.
	Prefix string
	// Extensions are what limits have beside the files, or nil.
	Extensions *config.RLSExtensions
	// AddressKeys are the keys whose values are addresses, which AppendCounter hashes. Nil means
	// those of Envoy, remote_address and masked_remote_address.
	AddressKeys []string
}

// compiler makes a Config of documents.
type compiler struct {
	*report
	merge     bool
	prefix    string
	addresses map[string]bool
	config    Config
	edges     map[string]replacements // by domain
	wanted    []wanted                // names that are to be replaced
	compared  int                     // pairs of patterns
	pathBytes int                     // of all rules
}

// compile compiles documents. The config is nil if the report has mistakes.
func compile(docs []*document, opts Options, r *report) (*Config, Problems) {
	c := &compiler{
		report: r, merge: opts.MergeDomains, prefix: opts.Prefix, addresses: map[string]bool{},
		config: Config{domains: map[string]*Domain{}},
		edges:  map[string]replacements{},
	}
	keys := opts.AddressKeys
	if keys == nil {
		keys = []string{"remote_address", "masked_remote_address"}
	}
	for _, key := range keys {
		c.addresses[key] = true
	}
	for _, doc := range docs {
		c.document(doc)
	}
	for _, domain := range slices.Sorted(maps.Keys(c.edges)) {
		c.checkCircles(c.edges[domain])
	}
	if c.mistakes == 0 { // a mistake may have hidden a name
		c.checkNames()
	}
	c.extend(opts.Extensions)
	sortProblems(r.list, docs)
	r.list = slices.Compact(r.list) // nested merges warn of one key several times
	if r.mistakes > 0 {
		return nil, r.list
	}
	slices.SortStableFunc(c.config.limited, compareRules)
	return &c.config, r.list
}

// sortProblems sorts problems by the order of their files and by their lines.
func sortProblems(list Problems, docs []*document) {
	order := map[string]int{}
	for i, doc := range docs {
		order[doc.at.file] = i - len(docs) // before the file of extensions
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		if a.File != b.File {
			return order[a.File] - order[b.File]
		}
		return a.Line - b.Line
	})
}

// counter returns the beginning of the names of the counters of a domain.
func (c *compiler) counter(domain string) string {
	var name []byte
	if c.prefix != "" {
		name = append(appendKey(name, c.prefix), ':')
	}
	return string(appendKey(name, domain))
}

// document adds the descriptors of a document to its domain.
func (c *compiler) document(doc *document) {
	name := doc.domain.value
	at := doc.at.in("domain").on(max(doc.domain.line, doc.at.line))
	d := &Domain{Name: name, at: at, counter: c.counter(name), addresses: c.addresses}
	other := c.config.domains[name]
	switch {
	case doc.domain.broken:
	case name == "":
		c.fail(at, "a configuration needs the name of its domain: write domain: NAME")
	case len(name) > maxKeyBytes:
		c.fail(at, "the name of a domain has at most %d bytes", maxKeyBytes)
	case other == nil:
		c.config.domains[name] = d
	case c.merge:
		d = other
	default:
		c.fail(at, "domain %s is there already, see %s: join them, or set MERGE_DOMAIN_CONFIG=true, as --rls-merge-domains does", limit.Quote(name), other.at.seenFrom(at))
	}
	c.descriptors(d, &d.root, &Rule{}, doc.descriptors)
}

// descriptors adds descriptors below a node, whose path and steps are those of the rule above.
func (c *compiler) descriptors(d *Domain, n *node, above *Rule, specs []descriptorSpec) {
	for i := range specs {
		if c.stopped {
			return
		}
		c.descriptor(d, n, above, &specs[i])
	}
}

// descriptor adds a descriptor and those below it.
func (c *compiler) descriptor(d *Domain, parent *node, above *Rule, spec *descriptorSpec) {
	ok := c.checkKey(spec)
	s := c.step(spec)
	r := &Rule{
		Domain: d.Name, Path: s.element, File: spec.at.file, Line: spec.at.line,
		Shadow: spec.shadow, Quota: spec.quota, DetailedMetric: spec.detailedMetric, Metadata: spec.metadata,
		counter: d.counter, steps: append(above.steps[:len(above.steps):len(above.steps)], s),
	}
	if above.Path != "" {
		r.Path = above.Path + "." + s.element
	}
	if c.pathBytes += len(r.Path); c.pathBytes > maxPathBytes {
		c.stop(spec.at, "the keys and values of all descriptors, with those above them, have more than %d bytes", maxPathBytes)
	}
	n := &node{at: spec.at, shared: s.shared}
	if spec.policy != nil {
		c.policy(r, spec.policy)
	}
	if r.Limit != nil || len(spec.descriptors) == 0 {
		n.rule = r
	}
	if ok {
		c.insert(parent, spec, n)
	}
	if r.Limit != nil {
		c.config.limited = append(c.config.limited, r)
	}
	c.descriptors(d, n, r, spec.descriptors)
}

// checkKey checks the key and the value of a descriptor.
func (c *compiler) checkKey(spec *descriptorSpec) (ok bool) {
	before := c.mistakes
	key, value := spec.at.in("key"), spec.at.in("value").on(max(spec.value.line, spec.at.line))
	switch {
	case spec.key.broken:
	case spec.key.value == "":
		c.fail(key, "a descriptor needs a key: write key: NAME")
	case len(spec.key.value) > maxKeyBytes:
		c.fail(key, "a key has at most %d bytes", maxKeyBytes)
	case strings.Contains(spec.key.value, "*"):
		c.warn(key, "an asterisk in a key stands for itself: only values have patterns")
	}
	if _, err := netip.ParsePrefix(spec.value.value); err == nil && spec.key.value == "remote_address" {
		c.warn(value, "%s is a network, and a remote_address is one address, so that no request has it: networks are values of masked_remote_address", limit.Quote(spec.value.value))
	}
	if len(spec.value.value) > maxValueBytes {
		c.fail(value, "a value has at most %d bytes", maxValueBytes)
	}
	if spec.shareThreshold && !spec.value.broken && !strings.Contains(spec.value.value, "*") {
		c.fail(spec.at.in("share_threshold"), "a descriptor without a pattern has nothing to share: give it a value with *")
	}
	return before == c.mistakes && !spec.key.broken && !spec.value.broken
}

// step returns the level of a descriptor.
func (c *compiler) step(spec *descriptorSpec) step {
	key, value := spec.key.value, spec.value.value
	s := step{element: key, metered: spec.valueToMetric, shared: spec.shareThreshold, address: c.addresses[key]}
	counter := appendKey([]byte{';'}, key)
	if value == "" {
		s.counter = string(append(counter, ':'))
		return s
	}
	s.element, s.kind = key+"_"+value, exactValue
	if strings.Contains(value, "*") {
		s.kind = patternValue
	}
	counter = append(counter, '=')
	if s.kind == patternValue || !s.address {
		counter = appendKey(counter, value)
	}
	if s.kind == patternValue && !s.shared {
		counter = append(counter, ':')
	}
	s.counter = string(counter)
	return s
}

// policy sets the limit of a rule.
func (c *compiler) policy(r *Rule, spec *policySpec) {
	unitAt := spec.at.in("unit").on(max(spec.unit.line, spec.at.line))
	unit := parseUnit(spec.unit.value)
	switch {
	case spec.unit.broken:
	case spec.unit.value != "" && unit == UnitUnknown && !spec.unlimited:
		c.fail(unitAt, "%s is not a unit; %s", limit.Quote(spec.unit.value), didYouMean(strings.ToLower(spec.unit.value), unitNames, "write "+orList(unitNames)))
	case spec.broken:
	case spec.unlimited && unit != UnitUnknown:
		c.fail(unitAt, "an unlimited descriptor has no unit: remove one of unit and unlimited")
	case spec.unlimited:
	case spec.unit.value == "":
		c.fail(unitAt, "the unit is missing: write %s", orList(unitNames))
	case spec.noRequests:
		c.warn(spec.at.in("requests_per_unit"), "it is missing, and so 0: every request is over the limit")
	}
	r.Limit = &Policy{Unit: unit, RequestsPerUnit: spec.requestsPerUnit, Unlimited: spec.unlimited, Name: spec.name.value}
	if len(spec.name.value) > maxKeyBytes {
		c.fail(spec.at.in("name"), "a name has at most %d bytes", maxKeyBytes)
	}
	c.replaces(r, spec.replaces)
}

// didYouMean returns a question with the word that is probably meant, or otherwise.
func didYouMean(word string, words []string, otherwise string) string {
	if near := limit.Nearest(word, words); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// orList returns words as a list for a sentence.
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
