package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/limit"
)

// fields are the allowed entries of a mapping, each with the function that reads it into
// a T.
type fields[T any] map[string]func(d *limitsDecoder, to *T, n *yaml.Node, field string)

// mapping reads each entry of a mapping, and reports unknown and duplicate keys.
func mapping[T any](d *limitsDecoder, to *T, known fields[T], n *yaml.Node, field string) {
	meant := sync.OnceValue(func() string { return otherRate(resolveAlias(n)) }) // once: a mapping may have many such keys
	misspelt := map[string]bool{}
	d.entries(n, field, func(key, value *yaml.Node, field string) {
		if read := known[key.Value]; read != nil {
			read(d, to, value, field)
			return
		}
		comment, missing, ofLimit := foreignComment(key.Value, d.isJSON), spaceMissing(key, value), known["when"] != nil
		switch {
		case comment != "":
			d.fail(key, plain(field), "%s", comment)
		case missing != "":
			d.fail(key, plain(field), "%s", missing)
		case endsByComma(key, value):
			d.fail(key, plain(field), "a comma ends a value in braces: write numbers without commas, %s", withoutComma(resolveAlias(n), key))
		case key.Value != "" && key.Value == otherSlots(resolveAlias(n)):
			d.fail(key, plain(field), "unknown key; write %s", meantSlots(value))
		case ofLimit && otherKeys[folded(key.Value)] == slotsKey && !hasKey(resolveAlias(n), "algorithm"):
			d.fail(key, plain(field), "unknown key; write algorithm: concurrency and %s", meantSlots(value))
		case ofLimit && key.Value == "per" && hasRate(n) && isDimension(value):
			d.fail(key, plain(field), "unknown key; write by: [%s]", resolveAlias(value).Value)
		case ofLimit && folded(key.Value) == "capacity" && hasRefill(n) && !hasKey(resolveAlias(n), "burst") && strings.Trim(resolveAlias(value).Value, "0123456789") == "" && resolveAlias(value).Value != "":
			d.fail(key, plain(field), "unknown key; write burst: %s", plain(resolveAlias(value).Value))
		case ofLimit && otherKeys[folded(key.Value)] == rateKey && hasRate(n):
			d.fail(key, plain(field), "unknown key; leave it out, as rate has the number and its period, and burst the size of the bucket, or write another limit")
		case ofLimit && otherKeys[folded(key.Value)] == rateKey && meant() != "":
			d.fail(key, plain(field), "unknown key; write rate: %s, the number and its period in one", meant())
		case known["overrides"] != nil && isOverride(value):
			d.fail(key, plain(field), "unknown key; write it inside of overrides: {%s: ...}", plain(key.Value))
		default:
			advice := ""
			if known["plans"] != nil && hasLimits(resolveAlias(n)) {
				advice = cmp.Or(foreignKeyAdvice(key.Value), settingAdvice(key.Value))
			}
			advice = cmp.Or(advice, knownKeys(key.Value, field, slices.Sorted(maps.Keys(known))))
			d.fail(key, plain(field), "unknown key; %s", advice)
			name := keyMeantBy(advice)
			if read := known[name]; read != nil && !hasKey(resolveAlias(n), name) && !misspelt[name] {
				misspelt[name] = true
				d.readMisspelt(func() { read(d, to, value, field) })
			}
		}
	})
}

// keyMeantBy returns the key of advice that asks for one alone, or "".
func keyMeantBy(advice string) string {
	name, asks := strings.CutPrefix(advice, didYouMean)
	name, ends := strings.CutSuffix(name, "?")
	if !asks || !ends {
		return ""
	}
	return name
}

// readMisspelt reads the value of a misspelt key, which is reported already, as that of the key that is meant, so that no other mistakes
// follow of its absence. It keeps no mistakes of its own: the value may be another key's.
func (d *limitsDecoder) readMisspelt(read func()) {
	problems, unreadable := len(d.problems), d.unreadable
	read()
	d.problems, d.unreadable = d.problems[:problems], unreadable
}

// isOverride reports whether a value has keys of a limit alone.
func isOverride(value *yaml.Node) bool {
	n := resolveAlias(value)
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return false
	}
	for entry := range slices.Chunk(n.Content, 2) {
		if key := entry[0].Value; !slices.Contains(limitKeys, key) && !slices.Contains(overriddenKeys, key) {
			return false
		}
	}
	return true
}

// namesInList reports whether a node is a list of names with a list or a mapping each.
func namesInList(n *yaml.Node) bool {
	isName := func(item *yaml.Node) bool {
		item = resolveAlias(item)
		return item.Kind == yaml.MappingNode && len(item.Content) == 2 && resolveAlias(item.Content[1]).Kind != yaml.ScalarNode
	}
	return n.Kind == yaml.SequenceNode && len(n.Content) > 0 && isName(n.Content[0])
}

// exampleOf returns what the mapping of a field looks like, with the rate that stands in its place if one does.
func exampleOf(field string, n *yaml.Node) string {
	switch {
	case field == "":
		return "version: 1, default_plan: NAME and plans, as in docs/limits.md"
	case field == "dimensions":
		return "write {user: {}, region: {values: [eu, us]}}"
	case strings.HasPrefix(field, "dimensions."):
		return "write {values: [eu, us]}, {} for any value, or {hash: true} for one that is secret"
	case strings.HasSuffix(field, ".overrides"):
		return "write {ID: {rate: 500/s}}, with the id of a limit"
	case strings.Contains(field, ".overrides."):
		if limit.IsRate(n.Value) {
			return "write {rate: " + n.Value + "}"
		}
		return "write {rate: 500/s}"
	case strings.HasSuffix(field, ".when"):
		return `write {op: "POST /v1/payments*"}, or {ip: 203.0.113.0/24}`
	case field == "plans":
		return "write {NAME: [limits]}"
	case field == "tenants":
		return "write {TENANT: {plan: NAME}}"
	}
	return "NAME: VALUE"
}

// entries calls read for each entry of a mapping.
func (d *limitsDecoder) entries(n *yaml.Node, field string, read func(key, value *yaml.Node, field string)) {
	n = resolveAlias(n)
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		text := "names with values belong here: "
		if namesInList(n) {
			text = "a list is here in place of names with values: leave out the - in front of each name, and "
		}
		d.fail(n, field, "%s%s", text, exampleOf(field, n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content) && !d.unreadable; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.fail(key, field, "a name belongs here, not a list or a mapping")
			continue
		}
		if key.Tag == "!!merge" {
			d.fail(key, field, "merge keys are not supported: write the fields out; plans share whole limits by lists, see docs/limits.md")
			continue
		}
		name := join(field, key.Value)
		line := seen[key.Value]
		if line > 0 && key.Value == "id" && strings.HasSuffix(field, "]") && n.Style&yaml.FlowStyle == 0 && valueOf(n, "id").Value != value.Value {
			d.fail(key, plain(name), "a second id in the limit of %s: write - in front of it to begin another limit", d.doc.At(line))
			return
		}
		if line > 0 {
			d.fail(key, plain(name), "it is already there, on %s: remove one of them", d.doc.At(line))
			continue
		}
		seen[key.Value] = key.Line
		read(key, value, name)
	}
}

// text returns a function that reads a scalar of a T.
func text[T any](of func(*T) *limit.Text) func(*limitsDecoder, *T, *yaml.Node, string) {
	return func(d *limitsDecoder, to *T, n *yaml.Node, field string) { d.text(of(to), n, field) }
}

// texts returns a function that reads a list of scalars of a T.
func texts[T any](of func(*T) *[]limit.Text) func(*limitsDecoder, *T, *yaml.Node, string) {
	return func(d *limitsDecoder, to *T, n *yaml.Node, field string) { d.texts(of(to), n, field) }
}

// text reads a scalar.
func (d *limitsDecoder) text(to *limit.Text, n *yaml.Node, field string) {
	n = resolveAlias(n)
	if problem := notText(n); problem != "" {
		if n.Kind == yaml.MappingNode && strings.HasSuffix(field, ".rate") && problem != ofTemplate {
			problem += ": write the number and its period in one, such as rate: 100/m"
		}
		d.fail(n, plain(field), "%s", problem)
		return
	}
	*to = textOf(n)
}

// notText returns why a node is no text, or "" if it is.
func notText(n *yaml.Node) string {
	first, _ := utf8.DecodeRuneInString(n.Value)
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) > 0 && n.Content[0].Kind == yaml.MappingNode:
		return ofTemplate
	case n.Kind == yaml.SequenceNode:
		return "one value belongs here, not a list"
	case n.Kind != yaml.ScalarNode:
		return "one value belongs here, not names with values"
	case isNull(n):
		return "the value is missing: write one, or remove the line"
	case n.Style&yaml.TaggedStyle != 0:
		return textOfTag
	case strings.ContainsRune("“”„‟‘’‚«»", first):
		return fmt.Sprintf("%c is a typographic quote: write \" or '", first)
	}
	return ""
}

// spaceMissing returns the correction of a name that a value follows without a space, or "".
func spaceMissing(key, value *yaml.Node) string {
	if m := withoutSpace.FindStringSubmatch(key.Value); m != nil && isNull(value) {
		return "a space is missing behind the colon: write " + shown(m[1]+" "+strings.TrimLeft(m[2], "\u00a0"))
	}
	return ""
}

// endsByComma reports whether a key is the rest of a number with commas, as in {rate: 1,000/s}.
func endsByComma(key, value *yaml.Node) bool {
	return key.Value != "" && key.Value[0] >= '0' && key.Value[0] <= '9' && isNull(value)
}

// rateEndsByComma reports whether the rate of a limit in braces goes on behind a comma, in the next key.
func rateEndsByComma(n *yaml.Node) bool {
	for i := 0; i+3 < len(n.Content); i += 2 {
		if n.Content[i].Value == "rate" && strings.Trim(n.Content[i+1].Value, "0123456789") == "" {
			return endsByComma(n.Content[i+2], n.Content[i+3])
		}
	}
	return false
}

// mostGroups bounds the groups of digits of a number with commas: there is no larger number in a limits file.
const mostGroups = 6

// numberWithCommas matches the entry of a mapping with a number that has commas between its groups of digits.
var numberWithCommas = regexp.MustCompile(`^[a-z_]+: \d{1,3}(?:,\d{3})+(?:/\w+)?$`)

// withoutComma returns the entry of a mapping whose number goes on in key, and in others beside it, as it is meant.
func withoutComma(n, key *yaml.Node) string {
	at := slices.Index(n.Content, key)
	for most := mostGroups; most > 0 && at >= 0 && endsByComma(n.Content[at], n.Content[at+1]); most-- {
		at -= 2
	}
	if at < 0 || n.Content[at+1].Kind != yaml.ScalarNode {
		return exampleRate
	}
	meant := n.Content[at].Value + ": " + n.Content[at+1].Value
	for at += 2; at < len(n.Content) && strings.Count(meant, ",") < mostGroups && endsByComma(n.Content[at], n.Content[at+1]); at += 2 {
		meant += "," + n.Content[at].Value
	}
	if !numberWithCommas.MatchString(meant) {
		return exampleRate
	}
	return plain(strings.ReplaceAll(meant, ",", ""))
}

// exampleRate is a rate without commas.
const exampleRate = "rate: 1000/s"

// texts reads a list of scalars.
func (d *limitsDecoder) texts(to *[]limit.Text, n *yaml.Node, field string) {
	n = resolveAlias(n)
	if n.Kind != yaml.SequenceNode {
		d.fail(n, plain(field), "a list belongs here: [%s]", exampleList(n, field))
		if to != nil && n.Kind == yaml.ScalarNode && !isNull(n) {
			for word := range strings.SplitSeq(n.Value, ",") { // no second mistake follows of an empty list
				*to = append(*to, limit.Text{Value: strings.TrimSpace(word), Line: max(n.Line, 1)})
			}
		}
		return
	}
	for _, item := range n.Content {
		var t limit.Text
		if other := resolveAlias(item); other.Kind == yaml.SequenceNode && strings.HasSuffix(field, ".by") {
			d.fail(item, plain(field), "a dimension belongs here, not a list in the list: %s", insteadOfList(other))
			continue
		}
		d.text(&t, item, field)
		if d.unreadable {
			return
		}
		if t.Set() {
			*to = append(*to, t)
		}
	}
}

// exampleList returns what a list of a field has in the place of a value that is none.
func exampleList(n *yaml.Node, field string) string {
	switch {
	case n.Kind == yaml.ScalarNode && !isNull(n) && n.Value != "":
		return plain(n.Value)
	case strings.HasSuffix(field, ".by") && strings.HasPrefix(field, "shared"):
		return "ip"
	case strings.HasSuffix(field, ".by"):
		return "tenant, op"
	}
	return "a, b"
}

// insteadOfList says what to write in the place of a list of dimensions in the list of by. The tenant is always there.
func insteadOfList(n *yaml.Node) string {
	var names []string
	for _, item := range n.Content {
		names = append(names, resolveAlias(item).Value)
	}
	if strings.Join(names, "") == "" {
		return "write the names of dimensions alone"
	}
	if slices.Contains(names, "tenant") || len(names) < 2 {
		return "write " + plain(strings.Join(names, ", ")) + " without brackets around"
	}
	return "write " + plain(strconv.Quote(strings.Join(names, "|"))) + " for the first of them that a request has"
}

func textOf(n *yaml.Node) limit.Text { return limit.Text{Value: n.Value, Line: max(n.Line, 1)} }

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// resolveAlias returns the node that an alias stands for. The shape of the file bounds
// how deep aliases can nest.
func resolveAlias(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

func mergeProblems(a, b []limit.Problem) []limit.Problem {
	all := slices.Concat(a, b)
	slices.SortStableFunc(all, func(x, y limit.Problem) int { return cmp.Compare(x.Line, y.Line) })
	return all
}
