package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// MaxLimitsFileBytes bounds a limits file: 100,000 tenants with overrides fit.
const MaxLimitsFileBytes = 64 << 20

// ParseLimits compiles a limits file, YAML or JSON of the same shape. Name is
// what messages call it. All mistakes are listed at once, as a
// *limit.Problems; warnings name what is allowed and seldom meant.
func ParseLimits(name string, content []byte, opts limit.CompileOptions) (*limit.Set, []limit.Problem, error) {
	if len(content) > MaxLimitsFileBytes {
		return nil, nil, fmt.Errorf("read limits: %s has %d bytes: the largest limits file is %d", name, len(content), MaxLimitsFileBytes)
	}
	d := &limitsDecoder{doc: limit.Document{File: name}}
	d.decode(content)
	sum := sha256.Sum256(content)
	opts.Version = hex.EncodeToString(sum[:6])
	return d.compile(name, opts)
}

// compile compiles what was decoded. All mistakes of both are listed at once.
func (d *limitsDecoder) compile(name string, opts limit.CompileOptions) (*limit.Set, []limit.Problem, error) {
	set, warnings, err := limit.Compile(&d.doc, opts)
	if len(d.problems) == 0 {
		return set, warnings, err
	}
	// What could not be read is reported with what could not be compiled.
	all := &limit.Problems{File: name, List: d.problems}
	if d.unreadable {
		return nil, nil, all
	}
	var compiled *limit.Problems
	if errors.As(err, &compiled) {
		all.List = mergeProblems(d.problems, compiled.List)
	}
	return nil, warnings, all
}

// limitsDecoder turns YAML nodes into a limit.Document. It knows the shape of
// the file; what the words mean is for limit.Compile.
type limitsDecoder struct {
	doc      limit.Document
	problems []limit.Problem
	// unreadable says that the file is not YAML at all.
	unreadable bool
}

func (d *limitsDecoder) fail(n *yaml.Node, field, format string, args ...any) {
	d.problems = append(d.problems, limit.Problem{Line: n.Line, Field: field, Text: fmt.Sprintf(format, args...)})
}

func (d *limitsDecoder) decode(content []byte) {
	if root, ok := d.document(content); ok {
		d.top(root)
	} else {
		d.unreadable = true
	}
}

// document parses content, which must be one YAML document, and returns its
// root.
func (d *limitsDecoder) document(content []byte) (root *yaml.Node, ok bool) {
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		d.fail(&yaml.Node{Line: 1}, "", "the file is empty")
		return nil, false
	case err != nil:
		line, message := explainYAML(err)
		d.fail(&yaml.Node{Line: line}, "", "not readable as YAML: %s", message)
		return nil, false
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		d.fail(&yaml.Node{Line: max(more.Line, 1)}, "", "a second YAML document begins: one file is one document")
	}
	if len(doc.Content) != 1 {
		return nil, false
	}
	return doc.Content[0], true
}

func (d *limitsDecoder) top(n *yaml.Node) {
	d.mapping(n, "", map[string]func(*yaml.Node, string){
		"version":      d.text(&d.doc.Version),
		"default_plan": d.text(&d.doc.DefaultPlan),
		"max_levels":   d.text(&d.doc.MaxLevels),
		"dimensions":   d.dimensions,
		"plans":        d.plans,
		"tenants":      d.tenants,
		"shared": func(n *yaml.Node, field string) {
			d.doc.Shared = d.limits(n, field)
		},
	})
}

func (d *limitsDecoder) dimensions(n *yaml.Node, field string) {
	d.entries(n, field, func(key, value *yaml.Node, field string) {
		spec := limit.DimensionSpec{Name: textOf(key)}
		if !isNull(value) {
			d.mapping(value, field, map[string]func(*yaml.Node, string){"values": d.texts(&spec.Values)})
		}
		d.doc.Dimensions = append(d.doc.Dimensions, spec)
	})
}

func (d *limitsDecoder) plans(n *yaml.Node, field string) {
	d.entries(n, field, func(key, value *yaml.Node, field string) {
		d.doc.Plans = append(d.doc.Plans, limit.PlanSpec{Name: textOf(key), Limits: d.limits(value, field)})
	})
}

func (d *limitsDecoder) tenants(n *yaml.Node, field string) {
	d.entries(n, field, func(key, value *yaml.Node, field string) {
		spec := limit.TenantSpec{Name: textOf(key)}
		if !isNull(value) {
			d.mapping(value, field, map[string]func(*yaml.Node, string){
				"plan": d.text(&spec.Plan),
				"overrides": func(n *yaml.Node, field string) {
					d.entries(n, field, func(key, value *yaml.Node, field string) {
						o := limit.RuleSpec{Line: key.Line, ID: textOf(key)}
						fields := d.limitFields(&o)
						delete(fields, "id")
						d.mapping(value, field, fields)
						spec.Overrides = append(spec.Overrides, o)
					})
				},
			})
		}
		d.doc.Tenants = append(d.doc.Tenants, spec)
	})
}

// limits reads a list of limits.
func (d *limitsDecoder) limits(n *yaml.Node, field string) []limit.RuleSpec {
	n = resolveAlias(n)
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.fail(n, field, "a list of limits belongs here: lines that begin with - id: NAME")
		return nil
	}
	var specs []limit.RuleSpec
	for i, item := range n.Content {
		item = resolveAlias(item)
		spec := limit.RuleSpec{Line: item.Line}
		d.mapping(item, field+"["+strconv.Itoa(i)+"]", d.limitFields(&spec))
		specs = append(specs, spec)
	}
	return specs
}

// lease reads a word, or a mapping of size and ttl.
func (d *limitsDecoder) lease(spec *limit.LeaseSpec) func(*yaml.Node, string) {
	return func(n *yaml.Node, field string) {
		if n.Kind != yaml.MappingNode {
			d.text(&spec.Word)(n, field)
			return
		}
		d.mapping(n, field, map[string]func(*yaml.Node, string){"size": d.text(&spec.Size), "ttl": d.text(&spec.TTL)})
	}
}

func (d *limitsDecoder) limitFields(spec *limit.RuleSpec) map[string]func(*yaml.Node, string) {
	by := d.texts(&spec.By)
	return map[string]func(*yaml.Node, string){
		"id":        d.text(&spec.ID),
		"group":     d.text(&spec.Group),
		"rate":      d.text(&spec.Rate),
		"slots":     d.text(&spec.Slots),
		"burst":     d.text(&spec.Burst),
		"algorithm": d.text(&spec.Algorithm),
		"mode":      d.text(&spec.Mode),
		"action":    d.text(&spec.Action),
		"on_error":  d.text(&spec.OnError),
		"missing":   d.text(&spec.Missing),
		"timezone":  d.text(&spec.Timezone),
		"cost":      d.text(&spec.Cost),
		"max_cost":  d.text(&spec.MaxCost),
		"replaces":  d.texts(&spec.Replaces),
		"lease":     d.lease(&spec.Lease),
		"store":     d.text(&spec.Store),
		"by": func(n *yaml.Node, field string) {
			spec.BySet = true
			by(n, field)
		},
		"when": func(n *yaml.Node, field string) {
			d.entries(n, field, func(key, value *yaml.Node, field string) {
				w := limit.WhenSpec{Dim: textOf(key)}
				d.text(&w.Pattern)(value, field)
				spec.When = append(spec.When, w)
			})
		},
	}
}
