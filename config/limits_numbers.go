package config

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// placeholder matches the texts of templates: ${NAME}, ${NAME:-10}, $NAME and {{ }}.
var placeholder = regexp.MustCompile(`\$\{\w{1,64}(?::?[-=?+][^{}]{0,64})?\}|^\$[A-Za-z_]\w{0,63}|\{\{.*\}\}`)

// readRate reads the rate of a limit.
func readRate(d *limitsDecoder, spec *limit.RuleSpec, n *yaml.Node, field string) {
	value := resolveAlias(n)
	switch several := value.Kind == yaml.SequenceNode && len(value.Content) > 1; {
	case several && strings.HasPrefix(field, "tenants."):
		d.fail(value, plain(field), "one rate belongs here: for a further one, write another limit in the plan, with group: NAME")
	case several:
		d.fail(value, plain(field), "one rate belongs here: write a limit for each, the further ones with group: NAME")
	default:
		d.number(&spec.Rate, n, field, "a rate")
	}
	spec.RateUnread = spec.RateUnread || !spec.Rate.Set()
}

// readSlots reads the slots of a limit of concurrency.
func readSlots(d *limitsDecoder, spec *limit.RuleSpec, n *yaml.Node, field string) {
	d.number(&spec.Slots, n, field, "a number")
	spec.RateUnread = spec.RateUnread || !spec.Slots.Set()
}

// number returns a function that reads a number of a T.
func number[T any](of func(*T) *limit.Text) func(*limitsDecoder, *T, *yaml.Node, string) {
	return func(d *limitsDecoder, to *T, n *yaml.Node, field string) { d.number(of(to), n, field, "a number") }
}

// number reads a scalar that is no placeholder. Kind names the value for the error: "a rate".
func (d *limitsDecoder) number(to *limit.Text, n *yaml.Node, field, kind string) {
	value := resolveAlias(n)
	found := ""
	if value.Kind == yaml.ScalarNode {
		found = placeholder.FindString(value.Value)
	}
	switch {
	case found == "":
		d.text(to, n, field)
	case found[0] == '{':
		d.fail(value, plain(field), ofTemplate)
	default:
		d.fail(value, plain(field), ofVariable, plain(found), kind)
	}
}

// ofTemplate is the mistake of a value between {{ and }}.
const ofTemplate = "{{ }} is the placeholder of a template: fill the template in first"

// ofVariable is the mistake of a variable of a shell, with what belongs in its place.
const ofVariable = "%s is a placeholder: put %s in its place first"

// otherSlots returns the key of a limit of concurrency by which other limiters give the number of slots, or "".
func otherSlots(n *yaml.Node) string {
	algorithm := valueOf(n, "algorithm")
	if n.Kind != yaml.MappingNode || algorithm == nil || resolveAlias(algorithm).Value != "concurrency" || hasKey(n, "slots") {
		return ""
	}
	for _, key := range []string{"limit", "max", "max_requests", "count", "capacity", "quota", "max_concurrent", "concurrency"} {
		if hasKey(n, key) {
			return key
		}
	}
	return ""
}

// meantSlots returns the slots to write in the place of a key of other limiters with their number.
func meantSlots(value *yaml.Node) string {
	value = resolveAlias(value)
	if n, err := strconv.Atoi(value.Value); value.Kind == yaml.ScalarNode && err == nil && n >= 1 && n <= limit.MaxSlots {
		return "slots: " + plain(value.Value)
	}
	return "slots: 20"
}
