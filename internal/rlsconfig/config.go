package rlsconfig

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Config is the compiled configuration of all domains. It never changes, and is safe for
// concurrent use.
type Config struct {
	domains map[string]*Domain
	limited []*Rule // all rules with a policy, by domain and path
}

// Domain returns a domain, or nil if the configuration has none of that name.
func (c *Config) Domain(name string) *Domain { return c.domains[name] }

// Domains returns the names of the domains, sorted.
func (c *Config) Domains() []string { return slices.Sorted(maps.Keys(c.domains)) }

// Limited returns all rules with a policy, sorted by domain and path.
func (c *Config) Limited() []*Rule { return slices.Clone(c.limited) }

// Lines returns a line for each rule with a policy, sorted by domain and path, in the format of
// /rlconfig of envoyproxy/ratelimit.
func (c *Config) Lines() []string {
	lines := make([]string, len(c.limited))
	for i, r := range c.limited {
		lines[i] = fmt.Sprintf("%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t",
			oneLine.Replace(r.Domain+"."+r.Path), r.Limit.Unit, r.Limit.RequestsPerUnit, r.Shadow, r.Quota)
	}
	return lines
}

// oneLine escapes the ends of lines.
var oneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

func compareRules(a, b *Rule) int {
	return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Path, b.Path))
}

// Domain is a namespace of rules.
type Domain struct {
	Name string
	// FailsClosed is true if its limits deny while the store is away, and OnDenied is what its
	// descriptors take if a request is denied, both as extensions have it.
	FailsClosed bool
	OnDenied    OnDenied

	tenantKey string // counters with a value of this key are in its hash slot; "" is none

	at        place
	root      node
	counter   string          // the beginning of the names of its counters
	addresses map[string]bool // keys whose values are addresses
}

// Entry is a key with its value in a descriptor of a request.
type Entry struct{ Key, Value string }

// Rule is a descriptor of the configuration that descriptors of requests can meet. It must not
// be changed.
type Rule struct {
	Domain string
	// Path is the keys and values of all levels, such as tier_gold.user_vip. Different rules
	// may have the same path, as it joins words by characters that may be part of them.
	Path string
	File string // or the name of a resource of xDS
	Line int    // 0 in a resource
	// Limit is nil for a descriptor without rate_limit, which exempts requests.
	Limit *Policy
	// Shadow is true for a limit that counts and never denies.
	Shadow bool
	// Quota is true for a limit that denies only together with all other such limits of a
	// request.
	Quota bool
	// DetailedMetric is true if all levels of AppendStatKey are values of the request.
	DetailedMetric bool
	// Metadata is nil, or values of the types of structpb.Struct.AsMap.
	Metadata map[string]any
	// Replaces are names of policies that do not apply to a request to which this one applies.
	Replaces []string
	// Own is the limit that extensions make of Limit; its Limit is nil if they do not change it. Also
	// are further limits of the same requests.
	Own      Counted
	Also     []Counted
	OnDenied OnDenied

	counter string // see Domain
	steps   []step // one for each level
}

// Policy is a limit.
type Policy struct {
	// Unit is UnitUnknown if the policy is unlimited.
	Unit            Unit
	RequestsPerUnit uint32
	Unlimited       bool
	// Name is what Replaces of other rules refers to, and may be empty. Rules may share one.
	Name string
}

// step is a level of a rule.
type step struct {
	element string // of Rule.Path
	counter string // the part of a counter's name before the value
	kind    valueKind
	shared  bool // all values have one counter
	metered bool // the request's value is part of the level's stat key
	address bool // the value is an address
}

// valueKind is how a descriptor of the configuration selects values.
type valueKind uint8

const (
	anyValue valueKind = iota
	exactValue
	patternValue
)

// counts reports whether the request's value is part of the name of a counter.
func (s *step) counts() bool {
	return s.kind != exactValue && !s.shared || s.kind == exactValue && s.address
}
