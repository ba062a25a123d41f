package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// A limits file consists of parts that change independently: one for each tenant and each
// plan, and one for all the rest. A part is JSON of the same shape as in the file, so
// that a file can be split into parts and joined again, in any order. A part has the key
// of its item in a table.

// The kinds of parts that complete_for names.
const (
	PartShared  = "shared"
	PartPlans   = "plans"
	PartTenants = "tenants"
)

// completeFor is the key of a limits file that lists the kinds of parts for which the
// file is complete.
const completeFor = "complete_for"

// CompleteFor returns the kinds of parts for which a limits file declares itself
// complete: all, without a declaration. The file must be valid for ParseLimits.
func CompleteFor(name string, content []byte) (kinds []string, err error) {
	root, err := rootOf(name, content)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != completeFor {
			continue
		}
		for _, kind := range resolveAlias(root.Content[i+1]).Content {
			kinds = append(kinds, resolveAlias(kind).Value)
		}
		return kinds, nil
	}
	return []string{PartShared, PartPlans, PartTenants}, nil
}

// rootOf returns the root mapping of a limits file.
func rootOf(name string, content []byte) (*yaml.Node, error) {
	root, ok := new(limitsDecoder).document(content)
	if !ok || root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("split limits: %s is not a limits file", name)
	}
	return root, nil
}

// readCompleteFor checks the kinds of parts that complete_for lists.
func readCompleteFor(d *limitsDecoder, _ *limit.Document, n *yaml.Node, field string) {
	n = resolveAlias(n)
	if n.Kind != yaml.SequenceNode {
		d.fail(n, field, "say a list: of shared, plans and tenants those of which this file has all")
		return
	}
	for _, kind := range n.Content {
		if kind = resolveAlias(kind); !slices.Contains([]string{PartShared, PartPlans, PartTenants}, kind.Value) {
			d.fail(kind, field, "say shared, plans or tenants, not %q", kind.Value)
		}
	}
}

// SplitLimits splits a limits file into its parts. Name is the file's name in messages.
// The file must be valid for ParseLimits.
func SplitLimits(name string, content []byte) (map[string]json.RawMessage, error) {
	root, err := rootOf(name, content)
	if err != nil {
		return nil, err
	}
	parts := map[string]json.RawMessage{}
	shared := map[string]any{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i].Value, resolveAlias(root.Content[i+1])
		if key == completeFor {
			continue
		}
		prefix := map[string]string{"plans": table.PrefixPlan, "tenants": table.PrefixTenant}[key]
		if prefix == "" {
			shared[key] = plainOf(value)
			continue
		}
		for j := 0; j+1 < len(value.Content); j += 2 {
			body, err := json.Marshal(plainOf(value.Content[j+1]))
			if err != nil {
				return nil, fmt.Errorf("split limits: %w", err)
			}
			parts[prefix+value.Content[j].Value] = body
		}
	}
	body, err := json.Marshal(shared)
	if err != nil {
		return nil, fmt.Errorf("split limits: %w", err)
	}
	parts[table.KeyShared] = body
	return parts, nil
}

// plainOf returns a node as a JSON value. Scalars keep their text, whatever type YAML
// gives them; only a number in JSON syntax stays a number.
func plainOf(n *yaml.Node) any {
	n = resolveAlias(n)
	switch {
	case isNull(n):
		return nil
	case n.Kind == yaml.MappingNode:
		entries := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			entries[n.Content[i].Value] = plainOf(n.Content[i+1])
		}
		return entries
	case n.Kind == yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i := range n.Content {
			list[i] = plainOf(n.Content[i])
		}
		return list
	}
	if number, err := strconv.ParseInt(n.Value, 10, 64); err == nil && n.Tag == "!!int" && strconv.FormatInt(number, 10) == n.Value {
		return number
	}
	if n.Tag == "!!bool" && (n.Value == "true" || n.Value == "false") {
		return n.Value == "true"
	}
	return n.Value
}

// CompileParts compiles a limits file from its parts. Name is the file's name in
// messages.
func CompileParts(name string, parts map[string]json.RawMessage, opts limit.CompileOptions) (*limit.Set, []limit.Problem, error) {
	d := &partsDecoder{limitsDecoder: limitsDecoder{doc: limit.Document{File: name}}, parts: parts, lines: newItemLines(parts)}
	d.doc.Where = d.lines.where
	version := sha256.New()
	for _, part := range sortedNames(parts) {
		if !table.IsPart(part) {
			continue
		}
		fmt.Fprintf(version, "%s\x00%s\x00", part, parts[part])
		if table.IsTenant(part) {
			d.tenants = append(d.tenants, part)
			continue
		}
		if err := d.read(part); err != nil {
			return nil, nil, err
		}
	}
	d.doc.Tenants = d.eachTenant
	opts.Version = hex.EncodeToString(version.Sum(nil)[:6])
	set, warnings, err := d.compile(name, opts)
	if d.broken != nil {
		return nil, nil, d.broken
	}
	d.lines.place(warnings)
	if all := (*limit.Problems)(nil); errors.As(err, &all) {
		d.lines.place(all.List)
	}
	return set, warnings, err
}

// partsDecoder reads the parts of a limits file.
type partsDecoder struct {
	limitsDecoder
	parts   map[string]json.RawMessage
	tenants []string // of the parts, in order
	nodes   jsonNodes
	lines   *itemLines
	broken  error // why a tenant is not JSON
}

// node returns the node of a part.
func (d *partsDecoder) node(part string) (*yaml.Node, error) {
	n, err := d.nodes.read(d.parts[part])
	if err != nil {
		return nil, fmt.Errorf("compile limits: %s: it is not JSON: %w", part, err)
	}
	d.lines.number(part, n)
	return n, nil
}

// read reads a plan, or the part with the rest.
func (d *partsDecoder) read(part string) error {
	n, err := d.node(part)
	switch {
	case err != nil:
		return err
	case table.IsPlan(part):
		plan := limit.PlanSpec{Name: limit.Text{Value: table.Name(part), Line: n.Line}}
		plan.Limits = d.limits(n, join("plans", plan.Name.Value))
		d.doc.Plans = append(d.doc.Plans, plan)
	case n.Kind != yaml.MappingNode || hasKey(n, "plans") || hasKey(n, "tenants"):
		return fmt.Errorf("compile limits: %s: it is not what a file says beside its plans and tenants, which are parts of their own", table.KeyShared)
	default:
		mapping(&d.limitsDecoder, &d.doc, documentFields, n, "")
	}
	return nil
}

// eachTenant reads one tenant after the other, up to one that is not JSON.
func (d *partsDecoder) eachTenant(each func(*limit.TenantSpec)) {
	for _, part := range d.tenants {
		n, err := d.node(part)
		if err != nil {
			d.broken = err
			return
		}
		name := limit.Text{Value: table.Name(part), Line: n.Line}
		each(d.tenantOf(name, n, join("tenants", name.Value)))
	}
}

// hasKey reports whether a mapping has a key.
func hasKey(n *yaml.Node, key string) bool { return valueOf(n, key) != nil }

// valueOf returns the value of a key of a mapping, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// JoinLimits joins the parts of a limits file, as readable YAML.
func JoinLimits(parts map[string]json.RawMessage) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	shared, err := partNode(table.KeyShared, parts[table.KeyShared])
	if err != nil {
		return nil, err
	}
	plans, tenants := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range sortedNames(parts) {
		if name == table.KeyShared {
			continue
		}
		node, err := partNode(name, parts[name])
		if err != nil {
			return nil, err
		}
		to := plans
		if table.IsTenant(name) {
			to = tenants
		}
		to.Content = append(to.Content, textNode(table.Name(name)), node)
	}
	root.Content = inOrder(shared, plans, tenants)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("join limits: %w", err)
	}
	return out.Bytes(), nil
}

// inOrder returns the entries of a limits file in their customary order.
func inOrder(shared, plans, tenants *yaml.Node) (entries []*yaml.Node) {
	add := func(key string, value *yaml.Node) {
		if value != nil && len(value.Content)+len(value.Value) > 0 {
			entries = append(entries, textNode(key), value)
		}
	}
	found := func(key string) *yaml.Node {
		for i := 0; shared != nil && i+1 < len(shared.Content); i += 2 {
			if shared.Content[i].Value == key {
				return shared.Content[i+1]
			}
		}
		return nil
	}
	for _, key := range []string{"version", "default_plan", "max_levels", "dimensions"} {
		add(key, found(key))
	}
	add("plans", plans)
	add("tenants", tenants)
	add("shared", found("shared"))
	return entries
}

// partNode reads a part, to be written as YAML.
func partNode(name string, body []byte) (*yaml.Node, error) {
	if len(body) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	n, err := new(jsonNodes).read(body)
	if err != nil {
		return nil, fmt.Errorf("join limits: %s: %w", name, err)
	}
	byName(n)
	inBlocks(n)
	leaveOutNulls(n)
	return n, nil
}

// PartLines formats a part on one line, or a list with a line for each element. For an
// invalid part it returns no lines.
func PartLines(body json.RawMessage) (lines []string) {
	n, err := new(jsonNodes).read(body)
	if err != nil {
		return nil
	}
	elements := []*yaml.Node{n}
	switch {
	case isNull(n):
		return nil
	case n.Kind == yaml.SequenceNode:
		elements = n.Content
	case isSharedPart(n):
		elements = sharedElements(n)
	}
	for _, element := range elements {
		byName(element)
		element.Style = yaml.FlowStyle
		if line, err := yaml.Marshal(element); err == nil {
			lines = append(lines, strings.Join(strings.Fields(string(line)), " "))
		}
	}
	return lines
}

// isSharedPart reports whether a part is that of the keys beside plans and tenants.
func isSharedPart(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && len(n.Content) > 0 && documentFields[n.Content[0].Value] != nil
}

// sharedElements returns the shared limits of a part, and each of its other entries as a mapping.
func sharedElements(n *yaml.Node) (elements []*yaml.Node) {
	var rest []*yaml.Node
	for entry := range slices.Chunk(n.Content, 2) {
		if value := entry[1]; entry[0].Value == "shared" && value.Kind == yaml.SequenceNode {
			elements = value.Content
			continue
		}
		rest = append(rest, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: entry})
	}
	return slices.Concat(elements, rest)
}

// byName sorts the entries of mappings by name, behind the id.
func byName(n *yaml.Node) {
	for _, child := range n.Content {
		byName(child)
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	entries := slices.Collect(slices.Chunk(n.Content, 2))
	slices.SortStableFunc(entries, func(a, b []*yaml.Node) int {
		switch a, b := a[0].Value, b[0].Value; {
		case a == b:
			return 0
		case a == "id" || b != "id" && a < b:
			return -1
		}
		return 1
	})
	n.Content = slices.Concat(entries...)
}

// inBlocks sets the block style on a node, except for lists of words.
func inBlocks(n *yaml.Node) {
	n.Style = 0
	words := n.Kind == yaml.SequenceNode
	for _, child := range n.Content {
		inBlocks(child)
		words = words && child.Kind == yaml.ScalarNode
	}
	if words {
		n.Style = yaml.FlowStyle
	}
}

func textNode(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

func sortedNames(parts map[string]json.RawMessage) []string {
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
