package reference

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// keys is a limit as in the file, by key, so that an override can change the keys that it
// names.
type keys map[string]yaml.Node

// file is a limits file.
type file struct {
	DefaultPlan string            `yaml:"default_plan"`
	Plans       map[string][]keys `yaml:"plans"`
	Tenants     map[string]struct {
		Plan      string          `yaml:"plan"`
		Overrides map[string]keys `yaml:"overrides"`
	} `yaml:"tenants"`
	Shared     []keys `yaml:"shared"`
	Dimensions map[string]struct {
		Values []string `yaml:"values"`
	} `yaml:"dimensions"`
}

// limitKeys is one limit as in the file. Keys that change no decision of an exact store
// are not read.
type limitKeys struct {
	ID        string            `yaml:"id"`
	By        []string          `yaml:"by"`
	When      map[string]string `yaml:"when"`
	Group     string            `yaml:"group"`
	Slots     int64             `yaml:"slots"`
	Rate      string            `yaml:"rate"`
	Burst     int64             `yaml:"burst"`
	Algorithm string            `yaml:"algorithm"`
	Timezone  string            `yaml:"timezone"`
	Mode      string            `yaml:"mode"`
	Enforce   string            `yaml:"enforce"`
	Warn      string            `yaml:"warn"` // changes no decision
	Action    string            `yaml:"action"`
	Missing   string            `yaml:"missing"`
	Cost      int64             `yaml:"cost"`
	MaxCost   int64             `yaml:"max_cost"`
	Replaces  []string          `yaml:"replaces"`
}

// limits is a parsed limits file.
type limits struct {
	defaultPlan string
	plans       map[string][]*limit
	tenants     map[string]tenant
	shared      []*limit
	// declared has the values of the dimensions that declare them.
	declared map[string][]string
}

// tenant is a listed tenant: the limits of its plan, each overridden limit at the
// position of the original.
type tenant struct {
	limits []*limit
}

// ofTenant returns the limits that may apply to a tenant's requests, in the order in
// which they bind.
func (l *limits) ofTenant(name string) []*limit {
	own := l.plans[l.defaultPlan]
	if t, listed := l.tenants[name]; listed {
		own = t.limits
	}
	if name == "" {
		own = nil
	}
	return slices.Concat(own, l.shared)
}

func readLimits(text []byte) (*limits, error) {
	var f file
	if err := yaml.Load(text, &f); err != nil {
		return nil, err
	}
	l := &limits{
		defaultPlan: f.DefaultPlan,
		plans:       map[string][]*limit{},
		tenants:     map[string]tenant{},
		declared:    map[string][]string{},
	}
	for name, d := range f.Dimensions {
		if len(d.Values) > 0 {
			l.declared[name] = d.Values
		}
	}
	var err error
	if l.shared, err = readList(f.Shared, "shared", nil); err != nil {
		return nil, err
	}
	for name, plan := range f.Plans {
		if l.plans[name], err = readList(plan, "plan "+name, nil); err != nil {
			return nil, err
		}
	}
	for name, t := range f.Tenants {
		plan := t.Plan
		if plan == "" {
			plan = f.DefaultPlan
		}
		own, err := readList(f.Plans[plan], "plan "+plan, t.Overrides)
		if err != nil {
			return nil, fmt.Errorf("tenant %q: %w", name, err)
		}
		l.tenants[name] = tenant{own}
	}
	return l, nil
}

// readList reads the limits of a plan or the shared ones, with a tenant's overrides at
// the position of the limits that they override.
func readList(list []keys, name string, overrides map[string]keys) ([]*limit, error) {
	var read []*limit
	for _, k := range list {
		base, err := decode(k)
		if err != nil {
			return nil, err
		}
		o, overridden := overrides[base.ID]
		if overridden {
			if base, err = decode(override(k, o)); err != nil {
				return nil, err
			}
		}
		l, err := newLimit(base)
		if err != nil {
			return nil, fmt.Errorf("limit %q: %w", base.ID, err)
		}
		l.list = name
		switch {
		case overridden:
			l.rank = ofOverride
		case name == "shared":
			l.rank = ofShared
		default:
			l.rank = ofPlan
		}
		read = append(read, l)
	}
	return read, nil
}

// override returns a limit with its keys replaced by those of an override. Mode and enforce take
// each other's place. newLimit drops a burst beside another algorithm, and a timezone beside a
// rate without a calendar period.
func override(base, o keys) keys {
	merged := keys{}
	for key, value := range base {
		merged[key] = value
	}
	for key, other := range map[string]string{"mode": "enforce", "enforce": "mode"} {
		if _, set := o[key]; set {
			delete(merged, other)
		}
	}
	for key, value := range o {
		merged[key] = value
	}
	merged["id"] = base["id"]
	return merged
}

func decode(k keys) (limitKeys, error) {
	node := yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for key, value := range k {
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, &value)
	}
	var read limitKeys
	err := node.Decode(&read)
	return read, err
}
