package rlsconfig

import (
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// The keys of the mappings of a file.
var (
	rootKeys       = []string{"domain", "descriptors"}
	descriptorKeys = []string{
		"key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode",
		"detailed_metric", "value_to_metric", "share_threshold", "metadata",
	}
	policyKeys  = []string{"unit", "requests_per_unit", "unlimited", "name", "replaces"}
	replaceKeys = []string{"name"}
)

// root reads the mapping of a file.
func (y *yamlReader) root(n *yaml.Node, doc *document) {
	misspelt := false
	y.entries(n, doc.at, func(key, value *yaml.Node) {
		at := doc.at.in(plain(key.Value)).on(key.Line)
		switch key.Value {
		case "domain":
			y.text(&doc.domain, value, at)
		case "descriptors":
			doc.descriptors = y.descriptors(value, at, 1)
		default:
			misspelt = y.unknown(key, at, rootKeys) || misspelt
		}
	})
	// A misspelt key is perhaps the one that is missing.
	misspelt = misspelt || n.Kind != yaml.MappingNode && !isNull(n)
	doc.domain.broken = doc.domain.broken || misspelt && doc.domain.value == ""
}

// Keys of files that get here by mistake.
var (
	kubernetesKeys = []string{"apiVersion", "kind", "metadata", "data"}
	limitsKeys     = []string{"version", "default_plan", "plans", "shared", "tenants", "include"}
)

// unknown reports a key that has no meaning in its place. One that has a meaning in another place has
// no effect in envoyproxy/ratelimit, and all others are mistakes there.
func (y *yamlReader) unknown(key *yaml.Node, at place, known []string) (mistake bool) {
	switch name := key.Value; {
	case !isQuoted(key) && resolvePlain(name).kind != stringScalar:
		y.fail(at, "a key is text, and YAML 1.1 reads %s as a number, a switch or null", limit.Quote(name))
	case slices.Contains(policyKeys, name):
		y.warn(at, "it has no effect here: it belongs below rate_limit")
		return false
	case slices.Contains(descriptorKeys, name):
		y.warn(at, "it has no effect here: it belongs to a descriptor")
		return false
	case slices.Contains(rootKeys, name):
		y.warn(at, "it has no effect here: it belongs to the top of the file")
		return false
	case slices.Equal(known, rootKeys) && slices.Contains(kubernetesKeys, name):
		y.fail(at, "unknown key; it is of an object of Kubernetes: write what is below data of a ConfigMap")
	case slices.Equal(known, rootKeys) && slices.Contains(limitsKeys, name):
		y.fail(at, "unknown key; it is of a limits file of Limitgate, which belongs in no folder of Envoy's limits: name that file itself, as in serve --limits FILE")
	default:
		y.fail(at, "unknown key; %s", didYouMean(name, known, "the keys are "+strings.Join(known, ", ")))
	}
	return true
}

// descriptors reads a list of descriptors at a depth, from 1.
func (y *yamlReader) descriptors(n *yaml.Node, at place, depth int) []descriptorSpec {
	var specs []descriptorSpec
	y.elements(n, at, func(n *yaml.Node, at place) {
		if y.addDescriptor(at, depth) {
			specs = append(specs, y.descriptor(n, at, depth))
		}
	})
	return specs
}

func (y *yamlReader) descriptor(n *yaml.Node, at place, depth int) descriptorSpec {
	spec, misspelt := descriptorSpec{at: at}, false
	y.entries(n, at, func(key, value *yaml.Node) {
		at := at.in(plain(key.Value)).on(key.Line)
		switch key.Value {
		case "key":
			y.text(&spec.key, value, at)
		case "value":
			y.text(&spec.value, value, at)
		case "rate_limit":
			spec.policy = y.policy(spec.policy, value, at)
		case "descriptors":
			spec.descriptors = y.descriptors(value, at, depth+1)
		case "shadow_mode":
			y.flag(&spec.shadow, value, at)
		case "quota_mode":
			y.flag(&spec.quota, value, at)
		case "detailed_metric":
			y.flag(&spec.detailedMetric, value, at)
		case "value_to_metric":
			y.flag(&spec.valueToMetric, value, at)
		case "share_threshold":
			y.flag(&spec.shareThreshold, value, at)
		case "metadata":
			spec.metadata = y.metadata(spec.metadata, value, at)
		default:
			misspelt = y.unknown(key, at, descriptorKeys) || misspelt
		}
	})
	spec.key.broken = spec.key.broken || misspelt && spec.key.value == ""
	y.warnIdle(&spec)
	return spec
}

// warnIdle warns of switches of a descriptor that change nothing. Resources of xDS have them on all
// levels.
func (y *yamlReader) warnIdle(spec *descriptorSpec) {
	idle := func(key, reason string) { y.warn(spec.at.in(key), "it has no effect: %s", reason) }
	for _, s := range []struct {
		on  bool
		key string
	}{{spec.shadow, "shadow_mode"}, {spec.quota, "quota_mode"}, {spec.detailedMetric, "detailed_metric"}} {
		switch {
		case !s.on:
		case spec.policy == nil:
			idle(s.key, "the descriptor has no rate_limit of its own, and those below it do not inherit it")
		case spec.policy.unlimited && s.key != "detailed_metric":
			idle(s.key, "the descriptor is unlimited")
		}
	}
	if spec.detailedMetric && spec.valueToMetric && spec.policy != nil {
		idle("value_to_metric", "detailed_metric has the values of all levels already")
	}
	if p := spec.policy; p != nil && p.unlimited && p.requestsPerUnit > 0 {
		y.warn(p.at.in("requests_per_unit"), "it has no effect: the descriptor is unlimited")
	}
}

// policy reads a rate_limit. One that is there twice, or merged, is read into the first one.
func (y *yamlReader) policy(spec *policySpec, n *yaml.Node, at place) *policySpec {
	if isNull(y.follow(n, at)) {
		y.warn(at, "it is empty, and so the descriptor has no limit: requests that meet it pass")
		return nil
	}
	if spec == nil {
		spec = &policySpec{at: at, noRequests: true}
	}
	before := y.mistakes
	y.entries(n, at, func(key, value *yaml.Node) {
		at := at.in(plain(key.Value)).on(key.Line)
		switch key.Value {
		case "unit":
			y.text(&spec.unit, value, at)
		case "requests_per_unit":
			y.count(&spec.requestsPerUnit, value, at)
			spec.noRequests = false
		case "unlimited":
			y.flag(&spec.unlimited, value, at)
		case "name":
			y.text(&spec.name, value, at)
		case "replaces":
			spec.replaces = y.replaces(value, at)
		default:
			y.unknown(key, at, policyKeys)
		}
	})
	spec.broken = spec.broken || y.mistakes > before
	return spec
}

func (y *yamlReader) replaces(n *yaml.Node, at place) []replaceSpec {
	var specs []replaceSpec
	y.elements(n, at, func(n *yaml.Node, at place) {
		spec := replaceSpec{at: at}
		y.entries(n, at, func(key, value *yaml.Node) {
			at := at.in(plain(key.Value)).on(key.Line)
			if key.Value == "name" {
				y.text(&spec.name, value, at)
				return
			}
			spec.name.broken = y.unknown(key, at, replaceKeys) || spec.name.broken
		})
		specs = append(specs, spec)
	})
	return specs
}

// scalar reads a scalar. It reports other nodes, and tags.
func (y *yamlReader) scalar(n *yaml.Node, at place) (s scalar, value string, ok bool) {
	n = y.follow(n, at)
	switch {
	case n.Kind != yaml.ScalarNode:
		y.fail(at, "one value belongs here, not a list or a mapping")
		return scalar{}, "", false
	case n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str":
		y.fail(at, "tags are not supported: remove %s", plain(n.Tag))
		return scalar{}, "", false
	case isQuoted(n) || n.Style&yaml.TaggedStyle != 0:
		return scalar{}, n.Value, true
	}
	return resolvePlain(n.Value), n.Value, true
}

// text reads text. Numbers and switches are text as they are written, and null is no text.
func (y *yamlReader) text(to *text, n *yaml.Node, at place) {
	s, value, ok := y.scalar(n, at)
	*to = text{value: value, line: at.line, broken: !ok}
	switch {
	case s.kind == nullScalar:
		to.value = ""
	case s.kind == floatScalar:
		y.fail(at, "%s is read as a number with a fraction, or beyond 64 bits: write it in quotes", limit.Quote(value))
		to.broken = true
	}
}

// flag reads a boolean.
func (y *yamlReader) flag(to *bool, n *yaml.Node, at place) {
	s, value, ok := y.scalar(n, at)
	*to = s.boolean
	switch {
	case !ok || s.kind == boolScalar || s.kind == nullScalar:
	case s.kind == stringScalar && resolvePlain(value).kind == boolScalar:
		y.fail(at, "%s is in quotes, and so a string: remove the quotes", limit.Quote(value))
	default:
		y.fail(at, "%s is not a switch: write true or false", limit.Quote(value))
	}
}

// count reads a number of 32 bits.
func (y *yamlReader) count(to *uint32, n *yaml.Node, at place) {
	s, value, ok := y.scalar(n, at)
	*to = 0
	switch {
	case !ok || s.kind == nullScalar:
	case s.kind == stringScalar && resolvePlain(value).kind == intScalar:
		y.fail(at, "%s is in quotes, and so a string: remove the quotes", limit.Quote(value))
	case s.kind != intScalar || s.integer < 0 || s.integer > math.MaxUint32:
		y.fail(at, "%s is not a number of requests: write a whole number from 0 to %d", limit.Quote(value), uint32(math.MaxUint32))
	default:
		*to = uint32(s.integer)
	}
}
