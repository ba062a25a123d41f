package limitimport

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// kongWindow is a window of the plugin, and the period of its limit.
type kongWindow struct{ name, period string }

var kongWindows = []kongWindow{
	{"second", "s"}, {"minute", "m"}, {"hour", "h"}, {"day", "day"}, {"month", "month"}, {"year", "366d"},
}

// plugin adds the limits of a plugin.
func (k *kong) plugin(n *yaml.Node, scope []condition) {
	k.notes = nil
	if k.remarkMisplaced(n) || !k.accept(n) {
		return
	}
	config, ok := k.configOf(n)
	if !ok {
		return
	}
	k.remarkTypos(value(n, "config"))
	if !slices.ContainsFunc(kongWindows, func(w kongWindow) bool { return isSet(config, w.name) }) {
		k.remark(n.Line, "a plugin is not imported: its config has none of second, minute, hour, day, month and year")
		return
	}
	k.checkMerge(n)
	k.checkMerge(config)
	by, ok := k.by(n.Line, config)
	if !ok {
		return
	}
	k.remarkProtocols(n)
	rank := kongRank(n, scope)
	if scope, ok = k.scope(n, config, scope); !ok {
		return
	}
	if scalar(config, "limit_by") == "service" {
		by = k.byService(scope)
	}
	for _, field := range []string{"error_code", "error_message"} {
		if isSet(config, field) {
			k.note(field + " is not imported: services answer a denial themselves")
		}
	}
	policy := scalar(config, "policy")
	k.windows(kongPlugin{line: n.Line, rank: rank, local: policy == "" || policy == "local"}, config, imported{by: by, when: scope, algorithm: "fixed_window", closed: k.isClosed(config)})
}

// kongConfig are the fields of a config, beside windows, that an import reads, or that others are nearly like.
var kongConfig = []string{
	"limit_by", "header_name", "path", "policy", "fault_tolerant", "hide_client_headers", "error_code", "error_message", "sync_rate",
}

// remarkTypos remarks on fields of a config that are nearly those of Kong.
func (k *kong) remarkTypos(config *yaml.Node) {
	names := slices.Clone(kongConfig)
	for _, w := range kongWindows {
		names = append(names, w.name)
	}
	of := resolved(config)
	for i := 0; of != nil && of.Kind == yaml.MappingNode && i+1 < len(of.Content); i += 2 {
		if key := of.Content[i]; !slices.Contains(names, key.Value) && nearest(key.Value, names) != "" {
			k.remark(key.Line, "%s is not known, and not imported%s", limit.Shorten(key.Value), question(nearest(key.Value, names)))
		}
	}
}

// remarkMisplaced remarks on a plugin of limits that stands in the list as a word or as a field, and reports
// whether it does.
func (k *kong) remarkMisplaced(n *yaml.Node) bool {
	const name = "rate-limiting"
	field := value(n, name) != nil && !isSet(n, "name")
	if of := resolved(n); field || of != nil && of.Kind == yaml.ScalarNode && of.Value == name {
		k.plugins++
		k.remark(n.Line, "a plugin is not imported: write - {name: rate-limiting, config: {minute: 5}}, since Kong reads its name from the field name")
		return true
	}
	return false
}

// mostAdvanced bounds the rates that a remark on rate-limiting-advanced has.
const mostAdvanced = 4

// advancedRates returns the limits of rate-limiting-advanced as rates, with a comma in front, or "" where they are not whole numbers.
// Source: https://developer.konghq.com/plugins/rate-limiting-advanced/reference/
func advancedRates(config *yaml.Node) string {
	counts, sizes := items(config, "limit"), items(config, "window_size")
	var rates []string
	for i := range min(len(counts), len(sizes), mostAdvanced) {
		rate := resolved(counts[i]).Value + "/" + resolved(sizes[i]).Value + "s"
		if !limit.IsRate(rate) {
			return ""
		}
		rates = append(rates, "rate: "+rate)
	}
	if len(rates) == 0 || len(counts) != len(sizes) {
		return ""
	}
	algorithm := "sliding_window"
	if scalar(config, "window_type") == "fixed" {
		algorithm = "fixed_window"
	}
	text := ", " + strings.Join(rates, " and ")
	if more := len(counts) - len(rates); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if text += ", with algorithm: " + algorithm; len(counts) > 1 {
		text += " and a group for each but the first"
	}
	return text
}

// accept reports whether a plugin is imported. It counts plugins that limit, and remarks on those that are not.
func (k *kong) accept(n *yaml.Node) bool {
	switch scalar(n, "name") {
	case "rate-limiting":
	case "rate-limiting-advanced":
		k.remark(n.Line, "rate-limiting-advanced is not imported, only rate-limiting is: write a limit for each limit and window_size of it%s", advancedRates(value(n, "config")))
		return false
	default:
		switch name := scalar(n, "name"); {
		case nearest(name, []string{"rate-limiting"}) != "":
			k.remark(n.Line, "a plugin is not imported: there is no plugin %s; did you mean rate-limiting?", limit.Shorten(name))
		case name == "service-protection" || strings.Contains(strings.ReplaceAll(name, "-", ""), "ratelimit"): // such as response-ratelimiting
			k.remark(n.Line, "%s is not imported, only rate-limiting is", limit.Shorten(name))
		}
		return false
	}
	k.plugins++
	if k.remarkFields(n) {
		return false
	}
	for _, part := range []*yaml.Node{resolved(n), value(n, "config")} {
		if key := repeated(part); key != nil {
			k.remark(key.Line, "a plugin is not imported: the field %s stands there twice", limit.Shorten(key.Value))
			return false
		}
	}
	if how := scalar(n, "enabled"); how != "" {
		on, known := isOn(how)
		if !known {
			k.remark(n.Line, "enabled %s is neither true nor false: the plugin is imported", limit.Shorten(how))
		} else if !on {
			k.remark(n.Line, "a plugin that is not enabled is not imported")
			return false
		}
	}
	switch {
	case isSet(n, "consumer_group"):
		k.remark(n.Line, groupRemark)
		return false
	case k.unnamed != nil:
		k.remark(k.unnamed.Line, "%s", k.unnamed.Text)
		return false
	}
	return true
}

// scope returns the conditions of a plugin, and reports whether a limits file can express them.
func (k *kong) scope(n, config *yaml.Node, scope []condition) ([]condition, bool) {
	scope = slices.Clip(scope)
	for _, s := range kongScopes {
		if !isSet(n, s.entity) {
			continue
		}
		name := k.entityOf(n, s)
		if name == "" {
			k.remark(n.Line, "a plugin is not imported: the %s is a condition here, and that of its %s is not there", s.name, s.entity)
			return nil, false
		}
		of := condition{s.dimension, name}
		if known, isID := k.ids[of]; known != "" {
			of.pattern = known
		} else if isID {
			k.remark(n.Line, "a plugin is not imported: the %[2]s is a condition here, and the %[1]s %[3]s has none, so give it one", s.entity, s.name, limit.Shorten(name))
			return nil, false
		}
		if !k.names[of] {
			k.remark(n.Line, "the configuration has no %s %s: no request meets the condition on it, unless another file has one%s", s.entity, limit.Shorten(of.pattern), k.nearEntity(of))
		}
		if i := slices.IndexFunc(scope, func(c condition) bool { return c.dimension == s.dimension }); i < 0 {
			scope = append(scope, of)
		} else if scope[i] != of {
			k.remark(n.Line, "a plugin is not imported: it stands in %s %s and is of %[1]s %[3]s", s.entity, limit.Shorten(scope[i].pattern), limit.Shorten(name))
			return nil, false
		}
	}
	scope, ok := k.withService(n.Line, scope)
	if !ok {
		return nil, false
	}
	if path := scalar(config, "path"); scalar(config, "limit_by") == "path" && path != "" {
		scope = append(scope, condition{"path", path})
	}
	for _, c := range scope {
		if strings.Contains(c.pattern, "*") {
			k.remark(n.Line, "a plugin is not imported: a * in a condition stands for any text, and %s has one", limit.Shorten(c.pattern))
			return nil, false
		}
	}
	k.explainScope(scope)
	return scope, true
}

// mostNearEntities bounds the entities that are compared with one that is not there, and mostAsked those that are not there.
const mostNearEntities, mostAsked = 1000, 100

// nearEntity asks whether an entity of nearly the name is meant, or returns "".
func (k *kong) nearEntity(of condition) string {
	if k.asked++; k.asked > mostAsked || len(k.names) > mostNearEntities {
		return ""
	}
	var names []string
	for known := range k.names {
		if known.dimension == of.dimension && known.pattern != "" {
			names = append(names, known.pattern)
		}
	}
	slices.Sort(names)
	return question(nearest(of.pattern, names))
}

// isClosed reports whether the limits of a plugin deny while the store is away.
func (k *kong) isClosed(config *yaml.Node) bool {
	how := scalar(config, "fault_tolerant")
	if how == "" {
		return false
	}
	open, known := isOn(how)
	if !known {
		k.note(fmt.Sprintf("fault_tolerant %s is neither true nor false: the limit is closed", limit.Shorten(how)))
	}
	return !open
}

// windows adds a plugin with a limit for each of its windows.
func (k *kong) windows(p kongPlugin, config *yaml.Node, l imported) {
	for _, w := range kongWindows {
		text := scalar(config, w.name)
		if text == "" && isSet(config, w.name) {
			k.remark(p.line, "%s is not imported: it is a list or a mapping, and no whole number above zero", w.name)
		}
		if text == "" {
			continue
		}
		count, mistake := wholeNumber(text)
		if mistake != "" {
			k.remark(p.line, "%s: %s is not imported: it %s", w.name, limit.Shorten(text), mistake)
			continue
		}
		if w.name == "year" {
			k.note("a year is 366 days here, and does not follow the calendar")
		}
		l.id, l.group, l.rate = kongID(l.when, w.name), w.name, fmt.Sprintf("%d/%s", count, w.period)
		p.limits = append(p.limits, l)
	}
	p.notes = k.notes
	k.read = append(k.read, p)
}

// note adds a remark on the plugin that is being read, if its limits are imported.
func (k *kong) note(text string) { k.notes = append(k.notes, text) }

// kongWays are the values of limit_by.
var kongWays = []string{"consumer", "credential", "ip", "service", "header", "path", kongGroup}

// kongGroup is the value of limit_by by which all consumers of a group share units.
const kongGroup = "consumer-group"

// kongDims are the dimensions of an import that no header may have.
var kongDims = []string{"service", "route", "path", "credential"}

// by returns the dimensions of limit_by, and reports whether a limits file can express them.
func (k *kong) by(line int, config *yaml.Node) (by []string, ok bool) {
	switch what := scalar(config, "limit_by"); what {
	case "", "consumer":
		k.note("consumers are tenants: a request without a consumer, which Kong counts by its address, needs a tenant here")
		return []string{"tenant"}, true
	case "credential":
		k.hash("credential")
		k.note("services send DIM credential, with the id of the credential and not the key itself; " + withoutIt("credential"))
		return []string{"tenant", "credential"}, true
	case "ip":
		k.note("services send the address of the client; a request without it is not counted")
		k.note(fmt.Sprintf(prefixText, "Kong"))
		return []string{"ip"}, true
	case "service":
		return []string{"service"}, true // see byService
	case "header":
		if scalar(config, "header_name") == "" {
			k.remark(line, "a plugin is not imported: limit_by: header needs header_name")
			return nil, false
		}
		name := word(strings.ToLower(scalar(config, "header_name")))
		if limit.ReservedDim(name) || slices.Contains(kongDims, name) {
			name = "header-" + name
		}
		k.noteHeader(name, name)
		k.note(fmt.Sprintf("services send DIM %s with the header; %s", name, withoutIt(name)))
		return []string{name}, true
	case "path":
		if scalar(config, "path") == "" {
			k.remark(line, "a plugin is not imported: limit_by: path needs path")
			return nil, false
		}
		k.note("services send DIM path; requests of other paths, which Kong counts by their address, count for less specific limits alone")
		return []string{"path"}, true
	case kongGroup:
		k.remark(line, "a plugin is not imported: limit_by: %s counts the consumers of a group together; so does a shared limit with by: [%[1]s], for which services send DIM %[1]s", kongGroup)
		return nil, false
	default:
		k.remark(line, "a plugin is not imported: limits do not count by %s%s; Kong has %s", limit.Shorten(what), question(nearest(what, kongWays)), strings.Join(kongWays, ", "))
		return nil, false
	}
}

// withoutIt says how a request without a dimension counts, and what to write so that it counts as in Kong.
func withoutIt(dimension string) string {
	return fmt.Sprintf("a request without it, which Kong counts by its address, counts for less specific limits alone: %q in place of %[2]s in by counts it by its address, too", dimension+"|ip", dimension)
}

// byService returns the dimensions of limit_by: service. Requests of a route without a service have their address.
func (k *kong) byService(scope []condition) []string {
	has := func(dimension string) bool {
		return slices.ContainsFunc(scope, func(c condition) bool { return c.dimension == dimension })
	}
	at := slices.IndexFunc(scope, func(c condition) bool { return c.dimension == "route" })
	switch {
	case has("service"): // explainScope has the remark
	case at >= 0 && k.names[scope[at]] && !k.several[scope[at].pattern]:
		k.note(fmt.Sprintf("route %s has no service, so that Kong counts its requests by their addresses, and so do limits here", limit.Shorten(scope[at].pattern)))
		k.note(fmt.Sprintf(prefixText, "Kong"))
		return []string{"ip"}
	default:
		k.note("services send DIM service; " + withoutIt("service"))
	}
	return []string{"service"}
}

// explainScope remarks on the conditions of a plugin.
func (k *kong) explainScope(scope []condition) {
	for _, c := range scope {
		if c.dimension != "tenant" && c.dimension != "path" {
			k.note(fmt.Sprintf("the plugin of a %s has a condition on it: services send DIM %[1]s with its name in Kong", c.dimension))
		}
	}
}

// kongID returns the id of a limit: the names of its scope and its window.
func kongID(scope []condition, window string) string {
	var names []string
	for _, c := range scope {
		names = append(names, c.pattern)
	}
	return strings.Join(append(names, window), "-")
}
