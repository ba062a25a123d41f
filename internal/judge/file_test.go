package judge

import (
	"fmt"
	"slices"
	"strings"
)

// file is a limits file that can be changed piece by piece. Its values are written as
// YAML in flow style.
type file struct {
	head       []field // default_plan, max_levels
	dimensions []field
	plans      []plan
	tenants    []tenant
	shared     []rule
}

type field struct{ key, value string }

type plan struct {
	name  string
	rules []rule
}

type tenant struct {
	name, plan string
	overrides  []rule
}

// rule is one limit, or an override of one.
type rule struct {
	id     string
	fields []field
}

// get returns the value of a field, or "".
func (r *rule) get(key string) string {
	for _, f := range r.fields {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// with returns the rule with a field set, or without it where value is "".
func (r rule) with(key, value string) rule {
	r.fields = slices.DeleteFunc(slices.Clone(r.fields), func(f field) bool { return f.key == key })
	if value != "" {
		r.fields = append(r.fields, field{key, value})
	}
	return r
}

func flow(fields []field) string {
	var words []string
	for _, f := range fields {
		words = append(words, f.key+": "+f.value)
	}
	return "{" + strings.Join(words, ", ") + "}"
}

// String returns the file as YAML, one limit a line.
func (f *file) String() string {
	var b strings.Builder
	b.WriteString("version: 1\n")
	for _, h := range f.head {
		fmt.Fprintf(&b, "%s: %s\n", h.key, h.value)
	}
	if len(f.dimensions) > 0 {
		b.WriteString("dimensions:\n")
		for _, d := range f.dimensions {
			fmt.Fprintf(&b, "  %s: %s\n", d.key, d.value)
		}
	}
	list := func(indent string, rules []rule) {
		for _, r := range rules {
			fmt.Fprintf(&b, "%s- %s\n", indent, flow(append([]field{{"id", r.id}}, r.fields...)))
		}
	}
	if len(f.plans) > 0 {
		b.WriteString("plans:\n")
		for _, p := range f.plans {
			if len(p.rules) == 0 {
				fmt.Fprintf(&b, "  %s: []\n", p.name)
				continue
			}
			fmt.Fprintf(&b, "  %s:\n", p.name)
			list("    ", p.rules)
		}
	}
	if len(f.tenants) > 0 {
		b.WriteString("tenants:\n")
	}
	for _, t := range f.tenants {
		fmt.Fprintf(&b, "  %q:\n    plan: %s\n", t.name, t.plan)
		if len(t.overrides) > 0 {
			b.WriteString("    overrides:\n")
		}
		for _, o := range t.overrides {
			fmt.Fprintf(&b, "      %s: %s\n", o.id, flow(o.fields))
		}
	}
	if len(f.shared) > 0 {
		b.WriteString("shared:\n")
		list("  ", f.shared)
	}
	return b.String()
}

// clone returns a copy that can be changed.
func (f *file) clone() *file {
	c := &file{head: slices.Clone(f.head), dimensions: slices.Clone(f.dimensions), shared: cloneRules(f.shared)}
	for _, p := range f.plans {
		c.plans = append(c.plans, plan{p.name, cloneRules(p.rules)})
	}
	for _, t := range f.tenants {
		c.tenants = append(c.tenants, tenant{t.name, t.plan, cloneRules(t.overrides)})
	}
	return c
}

func cloneRules(rules []rule) []rule {
	var out []rule
	for _, r := range rules {
		out = append(out, rule{r.id, slices.Clone(r.fields)})
	}
	return out
}

// ruleLists returns all lists of rules of the file, to be changed in place.
func (f *file) ruleLists() []*[]rule {
	var lists []*[]rule
	for i := range f.plans {
		lists = append(lists, &f.plans[i].rules)
	}
	for i := range f.tenants {
		lists = append(lists, &f.tenants[i].overrides)
	}
	return append(lists, &f.shared)
}

// valid reports whether the file can be used.
func (f *file) valid() bool {
	_, err := compile(f.String())
	return err == nil
}
