package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

var documentFields = fields[limit.Document]{
	"version":      text(func(doc *limit.Document) *limit.Text { return &doc.Version }),
	"default_plan": readDefaultPlan,
	"max_levels":   text(func(doc *limit.Document) *limit.Text { return &doc.MaxLevels }),
	"dimensions":   readDimensions,
	completeFor:    readCompleteFor,
	listsKey:       readLists,
	"plans":        readPlans,
	"tenants":      readTenants,
	"shared": func(d *limitsDecoder, doc *limit.Document, n *yaml.Node, field string) {
		doc.Shared = d.limits(n, field)
	},
}

// documentKeys are keys of documentFields that mean nothing else anywhere.
var documentKeys = []string{"plans", "default_plan", "shared", "tenants", listsKey, "dimensions", "max_levels", "version"}

// limitKeys are keys of limitFields that mean nothing else above a limit.
var limitKeys = []string{"id", "by", "rate", "burst", "when", "algorithm", "on_error", "mode", "slots", "lease"}

// indentLimitKey is what to do with one of limitKeys that stands above a limit.
const indentLimitKey = "it belongs to a limit: indent it as far as the id behind the -"

var dimensionFields = fields[limit.DimensionSpec]{
	"values": texts(func(spec *limit.DimensionSpec) *[]limit.Text { return &spec.Values }),
	"hash":   text(func(spec *limit.DimensionSpec) *limit.Text { return &spec.Hash }),
}

// tenantKeys are the keys of tenantFields.
var tenantKeys = map[string]bool{"plan": true, "overrides": true}

var tenantFields = fields[limit.TenantSpec]{
	"plan":      text(func(spec *limit.TenantSpec) *limit.Text { return &spec.Plan }),
	"overrides": readOverrides,
}

var limitFields = fields[limit.RuleSpec]{
	"id":        text(func(spec *limit.RuleSpec) *limit.Text { return &spec.ID }),
	"group":     text(func(spec *limit.RuleSpec) *limit.Text { return &spec.Group }),
	"rate":      readRate,
	"slots":     readSlots,
	"burst":     number(func(spec *limit.RuleSpec) *limit.Text { return &spec.Burst }),
	"algorithm": text(func(spec *limit.RuleSpec) *limit.Text { return &spec.Algorithm }),
	"mode":      text(func(spec *limit.RuleSpec) *limit.Text { return &spec.Mode }),
	"warn":      text(func(spec *limit.RuleSpec) *limit.Text { return &spec.Warn }),
	"enforce":   text(func(spec *limit.RuleSpec) *limit.Text { return &spec.Enforce }),
	"action":    text(func(spec *limit.RuleSpec) *limit.Text { return &spec.Action }),
	"on_error":  text(func(spec *limit.RuleSpec) *limit.Text { return &spec.OnError }),
	"missing":   text(func(spec *limit.RuleSpec) *limit.Text { return &spec.Missing }),
	"timezone":  text(func(spec *limit.RuleSpec) *limit.Text { return &spec.Timezone }),
	"cost":      number(func(spec *limit.RuleSpec) *limit.Text { return &spec.Cost }),
	"max_cost":  number(func(spec *limit.RuleSpec) *limit.Text { return &spec.MaxCost }),
	"store":     text(func(spec *limit.RuleSpec) *limit.Text { return &spec.Store }),
	"replaces":  texts(func(spec *limit.RuleSpec) *[]limit.Text { return &spec.Replaces }),
	"by":        readBy,
	"when":      readWhen,
	"lease":     readLease,
}

// overrideFields are the fields of a limit that has an id already.
var overrideFields = func() fields[limit.RuleSpec] {
	some := maps.Clone(limitFields)
	delete(some, "id")
	return some
}()

var leaseFields = fields[limit.LeaseSpec]{
	"size": text(func(spec *limit.LeaseSpec) *limit.Text { return &spec.Size }),
	"ttl":  text(func(spec *limit.LeaseSpec) *limit.Text { return &spec.TTL }),
}

func readDimensions(d *limitsDecoder, doc *limit.Document, n *yaml.Node, field string) {
	d.entries(n, field, func(key, value *yaml.Node, field string) {
		spec := limit.DimensionSpec{Name: textOf(key)}
		if !isNull(value) {
			mapping(d, &spec, dimensionFields, value, field)
		}
		doc.Dimensions = append(doc.Dimensions, spec)
	})
}

func readPlans(d *limitsDecoder, doc *limit.Document, n *yaml.Node, field string) {
	d.entries(n, field, func(key, value *yaml.Node, field string) {
		if slices.Contains(documentKeys, key.Value) && !isPlan(value) {
			d.failIndented(key, field)
			return
		}
		if slices.Contains(limitKeys, key.Value) && !hasMappings(value) {
			d.fail(key, field, indentLimitKey)
			return
		}
		if isNull(value) {
			d.fail(value, field, "a list of limits belongs here; of a plan without limits say []")
			doc.Plans = append(doc.Plans, limit.PlanSpec{Name: textOf(key)}) // it is there for those that name it
			return
		}
		doc.Plans = append(doc.Plans, limit.PlanSpec{Name: textOf(key), Limits: d.limits(value, field)})
	})
}

// isPlan reports whether a node may be that of a plan: a list whose limits count by tenant.
func isPlan(n *yaml.Node) bool {
	n = resolveAlias(n)
	return n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(item *yaml.Node) bool {
		by := valueOf(resolveAlias(item), "by")
		return by != nil && !slices.ContainsFunc(by.Content, func(dim *yaml.Node) bool { return dim.Value == "tenant" })
	})
}

// hasMappings reports whether a node is a list of mappings alone, as that of a plan is.
func hasMappings(n *yaml.Node) bool {
	n = resolveAlias(n)
	return n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(item *yaml.Node) bool { return resolveAlias(item).Kind != yaml.MappingNode })
}

// failIndented records that a key of the document stands below another one.
func (d *limitsDecoder) failIndented(key *yaml.Node, field string) {
	d.fail(key, field, "%s belongs at the top level: write it without indentation, as version and plans are", key.Value)
}

// readLists reports lists beside those that expandLists has removed, or in a table.
func readLists(d *limitsDecoder, _ *limit.Document, n *yaml.Node, field string) {
	d.fail(n, field, "lists stand once in a limits file, and not in a table, whose plans have all their limits: remove these")
}

// readTenants records the tenants' node, to be read one tenant at a time.
func readTenants(d *limitsDecoder, doc *limit.Document, n *yaml.Node, field string) {
	doc.Tenants = func(each func(*limit.TenantSpec)) {
		d.entries(n, field, func(key, value *yaml.Node, field string) {
			if slices.Contains(documentKeys, key.Value) && resolveAlias(value).Kind == yaml.SequenceNode {
				d.failIndented(key, field)
				return
			}
			each(d.tenantOf(textOf(key), value, field))
		})
	}
}

// brokenJSON describes a text that begins as JSON does and is none, as that of an item which was written by hand; "" for others.
func brokenJSON(text string) string {
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return ""
	}
	if err := json.Unmarshal([]byte(text), new(any)); err != nil {
		return "it is no JSON: " + err.Error()
	}
	return ""
}

// tenantOf reads a tenant. It overwrites the tenant read before.
func (d *limitsDecoder) tenantOf(name limit.Text, n *yaml.Node, field string) *limit.TenantSpec {
	d.tenant = limit.TenantSpec{Name: name, Overrides: d.tenant.Overrides[:0]}
	switch n = resolveAlias(n); {
	case isNull(n):
	case n.Kind == yaml.MappingNode && tenantKeys[name.Value] && len(n.Content) > 0 && !isTenant(n):
		d.fail(&yaml.Node{Line: name.Line}, field, "it belongs to a tenant: indent it below the name of one, TENANT: {%s: {ID: {rate: 500/s}}}", name.Value)
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && d.isFile() && quotedTenant(n.Value) != "":
		d.fail(n, field, "the quotes make it a text: write %s without quotes around it", quotedTenant(n.Value))
	case n.Kind == yaml.ScalarNode && brokenJSON(n.Value) != "":
		d.fail(n, field, "%s", brokenJSON(n.Value))
	case n.Kind == yaml.ScalarNode && tenantKeys[name.Value]:
		d.fail(n, field, "it belongs to a tenant: indent it below the name of one, TENANT: {%s: %s}", name.Value, plain(n.Value))
	case n.Kind == yaml.ScalarNode:
		d.fail(n, field, "the plan and the overrides of a tenant belong here: write {plan: %s}", plain(n.Value))
	default:
		mapping(d, &d.tenant, tenantFields, n, field)
	}
	return &d.tenant
}

// isFile reports whether the limits are those of a file. An item of a table that an earlier release took stays in force.
func (d *limitsDecoder) isFile() bool { return d.doc.Where == nil }

// quotedTenant returns the fields of a tenant that stand in quotes, in braces, or "" if the text is something else.
func quotedTenant(text string) string {
	text = strings.TrimSpace(text)
	if name, value, found := strings.Cut(text, ":"); found && tenantKeys[name] {
		text = name + ": " + strings.TrimLeft(value, " ")
	}
	if !strings.HasPrefix(text, "{") {
		text = "{" + text + "}"
	}
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil || len(fields) == 0 || strings.Contains(text, "\n") {
		return ""
	}
	for name := range fields {
		if !tenantKeys[name] {
			return ""
		}
	}
	return plain(text)
}

func readOverrides(d *limitsDecoder, spec *limit.TenantSpec, n *yaml.Node, field string) {
	if resolveAlias(n).Kind == yaml.SequenceNode {
		d.fail(n, field, "the ids of limits with their fields belong here, and no list: ID: {rate: 500/s}")
		return
	}
	d.entries(n, field, func(key, value *yaml.Node, field string) {
		if overrideFields[key.Value] != nil && resolveAlias(value).Kind == yaml.ScalarNode {
			d.fail(key, plain(field), "the id of a limit belongs here, with its fields: ID: {%s: %s}", key.Value, plain(value.Value))
			return
		}
		if d.isFile() && isNull(resolveAlias(value)) {
			d.fail(key, plain(field), "what it changes is missing: write %s: {rate: 500/s}, or {mode: \"off\"} for a tenant without that limit", plain(key.Value))
			return
		}
		spec.Overrides = append(spec.Overrides, limit.RuleSpec{Line: key.Line, ID: textOf(key)})
		mapping(d, &spec.Overrides[len(spec.Overrides)-1], overrideFields, value, field)
	})
}

// includedList returns the list that a word in the place of a limit names, as "base" and "include base" do.
func includedList(word string) string {
	switch words := strings.Fields(word); {
	case len(words) == 1 && words[0] == includeKey:
		return "LIST"
	case len(words) > 1 && words[0] == includeKey:
		return plain(strings.Join(words[1:], " "))
	}
	return plain(word)
}

// splitLimit returns the second entry of a list that begins with a limit whose fields are an entry each, or nil.
func splitLimit(n *yaml.Node) *yaml.Node {
	alone := func(i int) string { // the name of an entry that has one field
		if i < len(n.Content) {
			if item := resolveAlias(n.Content[i]); item.Kind == yaml.MappingNode && len(item.Content) == 2 {
				return item.Content[0].Value
			}
		}
		return ""
	}
	if alone(0) != "id" || alone(1) == "id" || !slices.Contains(limitKeys, alone(1)) {
		return nil
	}
	return n.Content[1]
}

// isListOfLimits reports whether a node is a list of limits, and says what it is otherwise.
func (d *limitsDecoder) isListOfLimits(n *yaml.Node, field string) bool {
	if inner := valueOf(n, "limits"); inner != nil && n.Kind == yaml.MappingNode {
		d.fail(n, field, "a list of limits belongs here, without the key limits: lines that begin with - id: NAME")
		return false
	}
	if inner := valueOf(n, includeKey); inner != nil && n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		d.fail(n, field, "a list of limits belongs here: write - include: %s", plain(inner.Value))
		return false
	}
	if n.Kind != yaml.SequenceNode {
		d.fail(n, field, "%s", cmp.Or(brokenJSON(n.Value), "a list of limits belongs here: lines that begin with - id: NAME"))
		return false
	}
	if split := splitLimit(n); split != nil {
		d.fail(split, field, "the fields of one limit stand behind one -: write - in front of its id alone")
		return false
	}
	return true
}

// limits reads a list of limits.
func (d *limitsDecoder) limits(n *yaml.Node, field string) []limit.RuleSpec {
	n = resolveAlias(n)
	if isNull(n) {
		return nil
	}
	if !d.isListOfLimits(n, field) {
		return nil
	}
	var specs []limit.RuleSpec
	places := d.places[n]
	for i, item := range n.Content {
		item = resolveAlias(item)
		if places != nil {
			i = places[i]
		}
		at := field + "[" + strconv.Itoa(i) + "]"
		if field, value, found := strings.Cut(item.Value, "="); found && item.Kind == yaml.ScalarNode && slices.Contains(limitKeys, strings.TrimSpace(field)) {
			d.fail(item, at, "a colon and a space stand between a name and its value: write %s: %s", strings.TrimSpace(field), plain(strings.TrimSpace(value)))
			continue
		}
		if item.Kind == yaml.ScalarNode && !isNull(item) {
			d.fail(item, at, "the fields of a limit belong here, - id: NAME and its rate; for the limits of a list write - include: %s", includedList(item.Value))
			continue
		}
		if isInclude(item) && d.isFile() { // it stands where no plan is, which is a mistake of its own: others are replaced already
			continue
		}
		if isInclude(item) {
			d.fail(item, at, "the items of a table have no lists to include: write the limits here, as limitgate limits push does with those of a file")
			continue
		}
		if isMixed(item) {
			d.fail(item, at, "include stands alone: - include: LIST, and the fields of a limit in an entry of their own")
			continue
		}
		if meansInclude(item) {
			d.fail(item, plain(join(at, item.Content[0].Value)), "unknown key; did you mean %s?", includeKey)
			continue
		}
		spec, before := limit.RuleSpec{Line: item.Line}, len(d.problems)
		mapping(d, &spec, limitFields, item, at)
		spec.Misread = len(d.problems) > before
		spec.RateUnread = spec.RateUnread || hasOtherRate(item) || otherSlots(item) != ""
		if rateEndsByComma(item) {
			spec.Rate, spec.RateUnread = limit.Text{}, true
		}
		if d.unreadable {
			return nil
		}
		if !hasMergeKey(item) { // otherwise other mistakes follow of its missing fields
			specs = append(specs, spec)
		}
	}
	return specs
}

// hasMergeKey reports whether a mapping has a merge key.
func hasMergeKey(n *yaml.Node) bool {
	return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Tag == "!!merge" })
}

// readDefaultPlan reads the name of the default plan. Of a list with one name it is that, so that no second mistake follows.
func readDefaultPlan(d *limitsDecoder, doc *limit.Document, n *yaml.Node, field string) {
	d.text(&doc.DefaultPlan, n, field)
	if list := resolveAlias(n); list.Kind == yaml.SequenceNode && len(list.Content) == 1 && resolveAlias(list.Content[0]).Kind == yaml.ScalarNode {
		doc.DefaultPlan = textOf(resolveAlias(list.Content[0]))
	}
}

func readBy(d *limitsDecoder, spec *limit.RuleSpec, n *yaml.Node, field string) {
	spec.BySet = true
	d.texts(&spec.By, n, field)
}

func readWhen(d *limitsDecoder, spec *limit.RuleSpec, n *yaml.Node, field string) {
	if d.isFile() && isNull(resolveAlias(n)) {
		d.fail(n, plain(field), "the value is missing: write one, or remove the line")
		return
	}
	d.entries(n, field, func(key, value *yaml.Node, field string) {
		w := limit.WhenSpec{Dim: textOf(key)}
		if missing := spaceMissing(key, value); missing != "" {
			d.fail(key, plain(field), "%s", missing)
			return
		}
		if resolveAlias(value).Kind == yaml.SequenceNode {
			if key.Value == "ip" {
				d.fail(value, plain(field), "one address or network belongs here, such as 10.0.0.0/8: write a limit for each")
				return
			}
			d.fail(value, plain(field), "one value belongs here: write a limit for each value, or a prefix followed by *")
			return
		}
		n := len(spec.When)
		if n > 0 && isNull(value) && spec.When[n-1].Dim.Value == "ip" && limit.IsBlock(key.Value) {
			d.fail(key, plain(field), "one address or network belongs to ip, such as %s: write another limit for %s", plain(spec.When[n-1].Pattern.Value), plain(key.Value))
			return
		}
		if n > 0 && isNull(value) && value.Value == "" {
			d.fail(key, plain(field), "the value is missing: write %s: VALUE, or put text with a comma into quotes: \"%s, %[1]s\"", plain(key.Value), plain(spec.When[n-1].Pattern.Value))
			return
		}
		d.text(&w.Pattern, value, field)
		spec.When = append(spec.When, w)
	})
}

// readLease reads a word, or a mapping of size and ttl.
func readLease(d *limitsDecoder, spec *limit.RuleSpec, n *yaml.Node, field string) {
	if resolveAlias(n).Kind == yaml.MappingNode {
		mapping(d, &spec.Lease, leaseFields, n, field)
		return
	}
	d.text(&spec.Lease.Word, n, field)
}
