package limitimport

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// Rules imports a flat list of rules in JSON or YAML, each with rule_id, match, rate, per, capacity,
// on_fail and enabled. All rules that match a request count for it, so that each is a group of its
// own. The error is one of the syntax.
func Rules(content []byte) (Result, error) {
	list, err := readYAML(content)
	if err != nil {
		return Result{}, err
	}
	switch {
	case value(list, "_format_version") != nil:
		return Result{}, errors.New("it looks like a configuration of Kong: limitgate limits import kong FILE")
	case config.IsLimits(content):
		return Result{}, errors.New("it looks like a limits file: limitgate limits lint FILE")
	}
	if config.IsNginx(content) && (list == nil || list.Kind == yaml.ScalarNode) {
		return Result{}, errNginx
	}
	if list == nil || list.Kind != yaml.SequenceNode && value(list, "rules") == nil {
		return Result{}, errors.New("it is no list of rules: [{rule_id: pay, match: POST /pay*, rate: 10, per: tenant}]")
	}
	if list.Kind != yaml.SequenceNode {
		list = value(list, "rules")
	}
	r := &rules{ids: names{}, matchLines: map[string]int{}, lines: map[string]int{}}
	for _, n := range list.Content {
		r.rule(resolved(n))
	}
	if len(r.bySecond) > 0 {
		r.remark(r.secondLine, "a rate without a period is one of a second: that of %s", named(r.bySecond))
	}
	r.remarkAddedByCheck()
	if len(r.tenant)+len(r.shared) == 0 {
		r.remark(1, "there is no rule that can be imported")
	}
	result := r.result()
	result.Remarks = append(result.Remarks, r.remarkConditions(result.File)...)
	slices.SortStableFunc(result.Remarks, func(a, b Remark) int { return a.Line - b.Line })
	return result, nil
}

// rules is a list of rules that is being read.
type rules struct {
	draft
	ids        names
	bySecond   []string       // the limits whose rate has no period
	secondLine int            // of the first one
	matchLines map[string]int // of the first match with path or method
	lines      map[string]int // of the rules, by the ids of their limits
	notes      []Remark       // on the rule that is being read, if it is imported
}

// note adds a remark on a rule, unless it is not imported.
func (r *rules) note(line int, format string, args ...any) {
	r.notes = append(r.notes, Remark{Line: line, Text: fmt.Sprintf(format, args...)})
}

// ruleFields are the fields of a rule.
var ruleFields = map[string]bool{"rule_id": true, "match": true, "rate": true, "per": true, "capacity": true, "on_fail": true, "enabled": true}

// rule reads a rule.
func (r *rules) rule(n *yaml.Node) {
	r.notes = nil
	if n.Kind != yaml.MappingNode {
		r.remark(n.Line, "a rule is not imported: it has no fields")
		return
	}
	id := r.id(n)
	if !r.read(n, id) {
		delete(r.ids, id) // for another rule
	}
}

// read imports a rule as a limit of an id, or remarks why it does not, and reports whether it does.
func (r *rules) read(n *yaml.Node, id string) bool {
	if key := repeated(n); key != nil {
		r.remark(key.Line, "%s is not imported: the field %s stands there twice", id, limit.Shorten(key.Value))
		return false
	}
	if how := scalar(n, "enabled"); how != "" {
		on, known := isOn(how)
		if !known {
			r.remark(n.Line, "%s: enabled %s is neither true nor false: the rule is imported", id, limit.Shorten(strings.ToLower(how)))
		} else if !on {
			r.remark(n.Line, "%s is not imported: it is not enabled", id)
			return false
		}
	}
	if !r.fields(n, id) {
		return false
	}
	l := imported{id: id, group: id}
	period, ok := r.per(n, &l)
	if !ok {
		return false
	}
	if l.when, ok = r.match(n, id, l.by); !ok {
		return false
	}
	if l.rate, ok = r.rate(n, id, period); !ok {
		return false
	}
	if !r.capacity(n, &l) {
		return false
	}
	r.calendar(n, &l)
	switch how := scalar(n, "on_fail"); how {
	case "", "open", "allow":
	case "closed", "close", "deny":
		l.closed = true
	default:
		l.closed = true
		r.remark(n.Line, "%s: on_fail %s is neither open nor closed: the limit is closed", id, limit.Shorten(how))
	}
	if period == "" && !strings.Contains(scalar(n, "rate"), "/") {
		r.bySecond = append(r.bySecond, id)
		r.secondLine = cmp.Or(r.secondLine, n.Line)
	}
	for _, note := range r.notes {
		r.remark(note.Line, "%s", note.Text)
	}
	r.lines[id] = n.Line
	r.add(l)
	return true
}

// calendar sets the algorithm of a rate per month, which follows the calendar: others cannot.
func (r *rules) calendar(n *yaml.Node, l *imported) {
	if !strings.HasSuffix(l.rate, "/month") {
		return
	}
	l.algorithm = "fixed_window"
	if l.burst > 0 {
		r.remark(n.Line, "%s: capacity is not read, since a rate per month has no burst", l.id)
		l.burst = 0
	}
}

// id returns the id of the limit of a rule: rules of one group would take the place of each other.
func (r *rules) id(n *yaml.Node) string {
	given := scalar(n, "rule_id")
	id := r.ids.unique(word(cmp.Or(given, fmt.Sprintf("rule-line-%d", n.Line))))
	switch {
	case given == "":
		meant := ""
		if scalar(n, "id") != "" {
			meant = "; rule_id in place of id would name it"
		}
		r.note(n.Line, "a rule without rule_id is %s here%s", id, meant)
	case id != word(given):
		r.note(n.Line, "the limit of another rule has the id %s already: this one is %s", word(given), id)
	case id != given:
		r.note(n.Line, "rule_id %s is %s here", limit.Shorten(given), id)
	}
	return id
}

// unreadFields say what to write in the place of fields that a rule does not have.
var unreadFields = map[string]string{
	"burst": ": write capacity", "id": ": write rule_id", "name": ": write rule_id", "rule": ": write rule_id", "mode": ": the rule is enforced, unless limits import has --shadow", "dry_run": ": the rule is enforced, unless limits import has --shadow",
	"shadow": ": the rule is enforced, unless limits import has --shadow",
}

// fieldsOfRate and fieldsOfPeriod are words in fields of other formats without which a rate is another one.
var (
	fieldsOfRate   = []string{"limit", "limits", "max", "requests", "count", "quota"}
	fieldsOfPeriod = []string{
		"unit", "ttl", "ms", "millis", "milliseconds", "sec", "secs", "second", "seconds",
		"min", "mins", "minute", "minutes", "hour", "hours", "day", "days", "month", "months",
	}
)

const (
	writeRate   = "write rate, such as rate: 10/m"
	writePeriod = "write the period into rate, such as rate: 10/m, or into per, such as per: [ip, minute]"
)

// writeInstead says what to write in the place of a field without which a rate is another one, or returns "".
func writeInstead(field string) string {
	name := strings.ToLower(field)
	words := strings.FieldsFunc(strings.ToLower(wordBegin.ReplaceAllString(field, "${1}_$2")), func(c rune) bool { return c < 'a' || c > 'z' })
	has := func(of []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(of, w) })
	}
	switch {
	case has(fieldsOfRate):
		return writeRate
	case has(fieldsOfPeriod), periodInName.MatchString(name):
		return writePeriod
	}
	return ""
}

// rateInstead says which rate to write in the place of two fields of a rule, the number in one and the period in the other, or
// returns "".
func rateInstead(n *yaml.Node, field string) string {
	count, mistake := wholeNumber(scalar(n, field))
	if mistake != "" || value(n, "rate") != nil || writeInstead(field) != writeRate {
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		other := n.Content[i].Value
		if period, ok := periodOf(scalar(n, other)); ok && writeInstead(other) == writePeriod {
			return fmt.Sprintf("write rate: %d/%s in the place of %s and %s", count, period, limit.Shorten(field), limit.Shorten(other))
		}
	}
	return ""
}

// periodInName matches names of fields that have a period in them.
var periodInName = regexp.MustCompile(`window|period|interval|duration|timeframe|timespan|^every|^per[_-]?(?:s|m|h|d|[0-9])|^[rqt]p[smhd]$`)

// wordBegin matches where a word of a name such as windowMs begins.
var wordBegin = regexp.MustCompile(`([a-z])([A-Z])`)

// fields remarks on fields that are not read, and reports whether none of them is a misspelling.
func (r *rules) fields(n *yaml.Node, id string) (ok bool) {
	known := slices.Sorted(maps.Keys(ruleFields))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if ruleFields[key.Value] {
			continue
		}
		if near := limit.Nearest(strings.ToLower(key.Value), known); near != "" && value(n, near) == nil {
			r.remark(key.Line, "%s is not imported: there is no field %s; did you mean %s?", id, limit.Shorten(key.Value), near)
			return false
		}
		if write := cmp.Or(rateInstead(n, key.Value), writeInstead(key.Value)); write != "" {
			r.remark(key.Line, "%s is not imported: there is no field %s; %s", id, limit.Shorten(key.Value), write)
			return false
		}
		r.note(key.Line, "%s: the field %s is not read%s", id, limit.Shorten(key.Value), unreadFields[strings.ToLower(key.Value)])
	}
	return true
}

// per reads by what a rule counts, a period or dimensions, and returns its period, or "".
func (r *rules) per(n *yaml.Node, l *imported) (period string, ok bool) {
	words, ok := r.perWords(n, l.id)
	if !ok {
		return "", false
	}
	for _, w := range words {
		found, isPeriod := periodOf(w)
		switch {
		case isPeriod && period != "" && found != period:
			r.remark(n.Line, "%s is not imported: per names two periods: write a rule for each", l.id)
			return "", false
		case isPeriod:
			period = found
		case noPeriod(w) != "":
			r.remark(n.Line, "%s is not imported: %s", l.id, noPeriod(w))
			return "", false
		case w[0] >= '0' && w[0] <= '9':
			r.remark(n.Line, "%s is not imported: per %s is neither a period, such as minute or 5m, nor a dimension", l.id, limit.Shorten(w))
			return "", false
		case limit.Nearest(strings.ToLower(w), []string{"tenant"}) == "tenant" && !strings.EqualFold(w, "tenant"):
			r.remark(n.Line, "%s is not imported: per %s is no dimension of RL.CHECK; did you mean tenant?", l.id, limit.Shorten(w))
			return "", false
		default:
			r.dimension(n, l, word(strings.ToLower(w)))
		}
	}
	if len(l.by) == 0 {
		r.note(n.Line, "%s: per names no dimension, such as tenant or ip, so all requests that match share one bucket", l.id)
	}
	if len(l.by) > maxBy {
		r.remark(n.Line, "%s is not imported: a limit counts by %d dimensions at most", l.id, maxBy)
		return "", false
	}
	return period, true
}

// perWords returns the words of per, none of them empty.
func (r *rules) perWords(n *yaml.Node, id string) (words []string, ok bool) {
	texts := []string{scalar(n, "per")}
	for _, item := range items(n, "per") {
		item = resolved(item)
		if item.Kind != yaml.ScalarNode || strings.TrimSpace(item.Value) == "" {
			r.remark(item.Line, "%s is not imported: per has an item that is no text", id)
			return nil, false
		}
		texts = append(texts, item.Value)
	}
	for _, text := range texts {
		words = append(words, strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(",+/&; \t", c) })...)
	}
	return words, true
}

// dimension adds a dimension to those by which a limit counts.
func (r *rules) dimension(n *yaml.Node, l *imported, name string) {
	switch name {
	case "client", "consumer", "customer", "api_key", "key":
		r.note(n.Line, "%s: per %s counts by tenant", l.id, name)
		name = "tenant"
	case "global", "all", "route":
		return
	case "address", "remote_addr":
		name = "ip"
	}
	if slices.Contains(l.by, name) {
		return
	}
	l.by = append(l.by, name)
	if name != "tenant" && name != "ip" && name != "op" {
		r.note(n.Line, "%s: services send DIM %s; a request without it is not counted", l.id, name)
	}
}

// maxBy bounds the dimensions of an imported limit.
const maxBy = 8

// rate reads a number of requests a period, or COUNT/PERIOD. Period is that of per, or "".
func (r *rules) rate(n *yaml.Node, id, period string) (rate string, ok bool) {
	if scalar(n, "rate") == "" {
		r.remark(n.Line, "%s is not imported: rate is missing", id)
		return "", false
	}
	text, own, found := strings.Cut(scalar(n, "rate"), "/")
	if found {
		of, ok := periodOf(own)
		switch {
		case !ok && otherPeriod(own) != "":
			r.remark(n.Line, "%s is not imported: %s of its rate is no period here: write %s/%s", id, limit.Shorten(own), limit.Shorten(text), otherPeriod(own))
			return "", false
		case !ok && rateMeant(text, own) != "":
			r.remark(n.Line, "%s is not imported: its rate %s", id, rateMeant(text, own))
			return "", false
		case !ok:
			r.remark(n.Line, "%s is not imported: %s of its rate is no period, such as minute, 5m or month", id, limit.Shorten(own))
			return "", false
		case period != "" && of != period:
			r.remark(n.Line, "%s is not imported: its rate and per name two periods", id)
			return "", false
		}
		period = of
	}
	count, mistake := wholeNumber(text)
	if _, err := bucket.ParseRate(text); mistake != "" && err != nil && !numeric.MatchString(text) {
		r.remark(n.Line, "%s is not imported: rate %s: %s", id, limit.Shorten(text), err)
		return "", false
	}
	if mistake != "" {
		advice := wholeRate(text, period, found)
		if count, err := strconv.Atoi(text); err == nil && count == 0 {
			advice = ": to refuse, write a limit with action: deny into the limits file"
		}
		r.remark(n.Line, "%s is not imported: rate %s %s%s", id, limit.Shorten(text), mistake, advice)
		return "", false
	}
	return fmt.Sprintf("%d/%s", count, cmp.Or(period, "s")), true
}

// wholeRate advises a rate of whole numbers for a fraction, such as 5/2s for 2.5, or returns "". The period of per, where the
// rate has none, belongs into the rate then.
func wholeRate(text, period string, own bool) string {
	if !fraction.MatchString(text) {
		return ""
	}
	count, ok := new(big.Rat).SetString(text)
	if !ok || len(period) > 1 || count.Sign() <= 0 || count.IsInt() {
		return ""
	}
	advice := fmt.Sprintf(": write %d/%d%s", count.Num(), count.Denom(), cmp.Or(period, "s"))
	if period != "" && !own {
		advice += ", and leave the period out of per"
	}
	return advice
}

// fraction matches decimal fractions that are short.
var fraction = regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,3}$`)

// numeric matches the texts that are numbers in some notation.
var numeric = regexp.MustCompile(`^[-+0-9.,_eE]*$`)

// capacity reads the burst.
func (r *rules) capacity(n *yaml.Node, l *imported) (ok bool) {
	text := scalar(n, "capacity")
	if text == "" {
		return true
	}
	burst, mistake := wholeNumber(text)
	if mistake != "" {
		r.remark(n.Line, "%s is not imported: capacity %s %s", l.id, limit.Shorten(text), mistake)
		return false
	}
	l.burst = burst
	return true
}
