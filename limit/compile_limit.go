package limit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit/bucket"
)

// compileLimit compiles one limit of a plan or one shared limit. It returns nil if the
// limit has no usable id.
func (c *compiler) compileLimit(spec *RuleSpec, planName string, layer int8) *Limit {
	l := &Limit{ID: spec.ID.Value, Plan: planName, Line: spec.Line, layer: layer}
	switch {
	case !spec.ID.Set():
		c.fail(spec.Line, "id", "every limit needs one, which names it in replies, metrics and buckets: for example id: tenant")
	case !validWord(l.ID):
		c.fail(spec.ID.Line, "id", "%s is not an id: use 1 to 64 letters, digits, dots, dashes and underscores", Quote(l.ID))
	default:
		c.register(l)
		return c.compileFields(spec, l)
	}
	c.compileFields(spec, l) // for their mistakes
	return nil
}

// compileFields compiles the fields of a limit.
func (c *compiler) compileFields(spec *RuleSpec, l *Limit) *Limit {
	before := len(c.problems)
	c.compilePlace(spec, l)
	l.broken = spec.Misread || len(c.problems) > before
	c.compileWords(spec, l)
	c.compileRate(spec, l)
	c.compileCosts(spec, l)
	c.compileLease(spec, l)
	c.compileShare(spec, l)
	c.compileWarn(spec, l)
	for _, id := range spec.Replaces {
		l.Replaces = append(l.Replaces, id.Value)
	}
	c.checkStrict(spec, l)
	l.Undivided = l.Params
	if len(c.problems) == before {
		c.divide(l)
	} else if l.layer != layerOverride {
		c.mistakes[l.entry()] = slices.Clone(c.problems[before:])
	}
	return l
}

// compilePlace compiles the fields that decide with which limits a limit competes, and for which requests. After a
// mistake in the other ones, it is still compared with the others.
func (c *compiler) compilePlace(spec *RuleSpec, l *Limit) {
	c.compileKind(spec, l)
	l.slots = l.Params.Algorithm == bucket.AlgorithmConcurrency && l.Action == ActionLimit
	c.compileBy(spec, l)
	c.compileWhen(spec, l)
}

// compileKind compiles the group, the mode, the action and the algorithm of a limit.
func (c *compiler) compileKind(spec *RuleSpec, l *Limit) {
	l.Group = spec.Group.Value
	if spec.Group.Set() && !validWord(l.Group) {
		c.fail(spec.Group.Line, "group", "%s is not a name: use letters, digits, dots, dashes and underscores", Quote(l.Group))
	}
	l.Mode = word(c, spec.Mode, "mode", modes)
	l.Action = word(c, spec.Action, "action", actions)
	l.Params.Algorithm = bucket.AlgorithmTokenBucket
	if spec.Algorithm.Set() {
		l.Params.Algorithm = word(c, spec.Algorithm, "algorithm", algorithms)
	}
}

// validWord reports whether s can be an id or a dimension's name: its alphabet has none
// of the characters with a meaning in a bucket's name.
func validWord(s string) bool {
	for i := range len(s) {
		switch b := s[i]; {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '_', b == '-', b == '.':
		default:
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 64
}

// The words of a limits file.
var (
	modes      = map[string]Mode{"enforce": ModeEnforce, "shadow": ModeShadow, "off": ModeOff}
	actions    = map[string]Action{"deny": ActionDeny, "allow": ActionAllow}
	onErrors   = map[string]OnError{"open": OnErrorOpen, "closed": OnErrorClosed}
	places     = map[string]Placement{"shared": PlacementShared, "local": PlacementLocal, "auto-local": PlacementAutoLocal}
	missings   = map[string]Missing{"pass": MissingPass, "deny": MissingDeny, "share": MissingShare}
	algorithms = map[string]bucket.Algorithm{
		"token_bucket": bucket.AlgorithmTokenBucket, "sliding_window": bucket.AlgorithmSlidingWindow, "fixed_window": bucket.AlgorithmFixedWindow,
		"sliding_log": bucket.AlgorithmSlidingLog, "concurrency": bucket.AlgorithmConcurrency,
	}
	// meanings says what the words of a field do, for a word that is like none of them.
	meanings = map[string]string{
		"on_error": ": while the store is away open lets the backstop decide, closed denies",
		"missing":  ": without its dimension pass skips the limit, deny denies the request, share counts all such requests in one bucket",
	}
)

// compileWords compiles the other fields that are one of a few words.
func (c *compiler) compileWords(spec *RuleSpec, l *Limit) {
	l.OnError = word(c, spec.OnError, "on_error", onErrors)
	l.onErrSet, l.missSet = spec.OnError.Set(), spec.Missing.Set()
	l.Store = word(c, spec.Store, "store", places)
	l.Missing = word(c, spec.Missing, "missing", missings)
}

// misspelled reports whether the action of a limit is none.
func misspelled(spec *RuleSpec, l *Limit) bool { return spec.Action.Set() && l.Action == ActionLimit }

// word reads one of a few words; an absent one is the zero value.
func word[T any](c *compiler, t Text, field string, words map[string]T) T {
	v, ok := words[t.Value]
	if t.Set() && !ok {
		names := keys(words)
		hint := cmp.Or(meantWord(t.Value, names), meanings[field])
		c.fail(t.Line, field, "%s is not one of %s%s", Quote(t.Value), strings.Join(names, ", "), hint)
	}
	return v
}

func (c *compiler) compileBy(spec *RuleSpec, l *Limit) {
	if !spec.BySet && misspelled(spec, l) {
		return
	}
	l.everyLevel = !spec.BySet && l.Action == ActionAllow
	if l.everyLevel && spec.Group.Set() {
		c.fail(spec.Group.Line, "group", "%s has no by, and lifts the limits of every level and group: remove group, or say by what the limits count that it lifts", Quote(l.ID))
	}
	if !spec.BySet && l.Action == ActionLimit {
		example := "by: [tenant]"
		if l.layer == layerShared {
			example = "by: [ip], or by: [] for one bucket of all requests"
		}
		c.fail(spec.Line, "by", "say what the limit counts by: for example %s", example)
		return
	}
	l.field = true
	buckets := 1
	seen := map[string]bool{}
	for _, element := range c.separated(spec.By) {
		if seen[element.Value] {
			c.fail(element.Line, "by", "%s stands there twice", Quote(element.Value))
			continue
		}
		seen[element.Value] = true
		if strings.EqualFold(element.Value, "tenant") {
			if l.byTenant = true; element.Value != "tenant" {
				c.fail(element.Line, "by", "%s is not a dimension: write it in lower case", Quote(element.Value))
			}
			continue
		}
		d := c.compileDimension(element)
		if len(d.choices) == 1 && d.choices[0].values != nil {
			buckets *= len(d.choices[0].values)
		} else {
			l.field = false
		}
		l.by = append(l.by, d)
	}
	slices.SortFunc(l.by, func(a, b dimension) int { return cmp.Compare(a.text, b.text) })
	l.field = l.field && l.byTenant && !l.Params.Algorithm.ExpiresPerUnit()
	if l.layer == layerShared && l.byTenant {
		mend := "move it into a plan"
		if l.Action == ActionDeny {
			mend = "leave by out"
		}
		c.fail(spec.By[0].Line, "by", "a shared limit spans tenants and cannot count by tenant: %s", mend)
	}
	if l.layer != layerShared && !l.byTenant && l.Action == ActionLimit {
		c.fail(spec.Line, "by", "a plan's limit has to count by tenant too, or its tenants would spend each other's units: %s", cmp.Or(l.forPlan(), l.withTenant()))
	}
	if l.field && buckets > maxFieldValues {
		c.fail(spec.By[0].Line, "by", "the declared values make %d buckets for each tenant: at most %d fit one key", buckets, maxFieldValues)
	}
	l.suffix = ":" + l.ID + ";" + string(l.Params.Algorithm.Code())
}

// betweenDimensions matches what people write between dimensions in the place of a comma.
var betweenDimensions = regexp.MustCompile(`\s*[/+:&;]\s*|\s+and\s+`)

// separated returns the elements of by. Of one that joins dimensions by something else than a comma it reports that, and returns them, so
// that no other mistakes follow.
func (c *compiler) separated(by []Text) []Text {
	all := make([]Text, 0, len(by))
	for _, element := range by {
		names := betweenDimensions.Split(element.Value, -1)
		if len(names) == 1 || slices.ContainsFunc(names, func(name string) bool { return !validWord(name) }) {
			all = append(all, element)
			continue
		}
		c.fail(element.Line, "by", "%s is not a dimension: write [%s], with a comma between two", Quote(element.Value), strings.Join(names, ", "))
		for _, name := range names {
			all = append(all, Text{name, element.Line})
		}
	}
	return all
}

// withTenant returns the advice for a limit of a plan that does not count by tenant.
func (l *Limit) withTenant() string {
	by := []string{"tenant"}
	for i := range l.by {
		if Nearest(strings.ToLower(l.by[i].text), by) != "" {
			return "did you mean tenant in place of " + Quote(l.by[i].text) + "?"
		}
	}
	for i := range l.by {
		by = append(by, l.by[i].text)
	}
	text := "write by: [" + strings.Join(by, ", ") + "]"
	if l.slots { // which a tenant holds
		return text
	}
	return text + ", or move it to shared"
}

// compileDimension reads one element of by: a dimension, or a chain of dimensions.
func (c *compiler) compileDimension(element Text) dimension {
	d := dimension{text: element.Value, label: ";" + element.Value}
	names := strings.Split(element.Value, "|")
	for i, name := range names {
		if name == "tenant" {
			c.fail(element.Line, "by", "tenant is always there, so nothing can stand in for it: write by: [tenant, ...]")
		}
		c.checkDimensionName(Text{name, element.Line}, "by")
		p := propertyOf(name)
		p.values, p.hashed = c.dimensions[name], c.hashed[name]
		p.label = "="
		if len(names) > 1 {
			p.label = "=" + strconv.Itoa(i) + ":"
		}
		d.choices = append(d.choices, p)
	}
	return d
}

// everything has names that other limiters count all requests by, and that name no dimension.
var everything = map[string]bool{"global": true, "all": true, "everything": true, "any": true}

// checkDimensionName reports a dimension name that no request can have.
func (c *compiler) checkDimensionName(name Text, field string) {
	if !validWord(name.Value) {
		between := ""
		if trimmed := strings.TrimSpace(name.Value); trimmed != name.Value && validWord(trimmed) {
			c.fail(name.Line, field, "%s has a blank around it: write %s", Quote(name.Value), trimmed)
			return
		}
		if several := strings.Fields(name.Value); len(several) > 1 {
			between = ", and commas between several: [" + strings.Join(several, ", ") + "]"
			if either := strings.Split(name.Value, " or "); len(either) == 2 {
				between = fmt.Sprintf(", and write %q for the first of them that a request has", strings.Join(either, "|"))
			}
		}
		c.fail(name.Line, field, "%s is not a dimension: use letters, digits, dots, dashes and underscores%s", Quote(name.Value), between)
		return
	}
	switch name.Value {
	case "tenant", "op", "ip":
		return
	}
	if ReservedDim(name.Value) {
		c.fail(name.Line, field, "%s is not a dimension: write it in lower case", Quote(name.Value))
		return
	}
	if c.dimensions == nil {
		if field == "by" && everything[name.Value] {
			c.warn(name.Line, field, "%s is a dimension of requests that carry DIM %[2]s: for one bucket of all requests write by: [] among shared, and for one of a tenant by: [tenant]", Quote(name.Value), name.Value)
			return
		}
		if near := nearBuiltIn(name.Value); near != "" && field != "dimensions" {
			c.warn(name.Line, field, "%s is not %s: if it is a dimension of your own, declare it under dimensions", Quote(name.Value), near)
		}
		return
	}
	if field == "dimensions" {
		return
	}
	if _, ok := c.dimensions[name.Value]; !ok {
		near := meantWord(name.Value, append(keys(c.dimensions), "tenant"))
		c.fail(name.Line, field, "%s cannot occur: it is not among the declared dimensions%s", Quote(name.Value), cmp.Or(near, "; add "+name.Value+": {} to them"))
	}
}

func (c *compiler) compileWhen(spec *RuleSpec, l *Limit) {
	for _, w := range spec.When {
		field := "when." + w.Dim.Value
		if !w.Pattern.Set() {
			continue // it could not be read, which is reported already
		}
		c.checkDimensionName(w.Dim, "when")
		cond, err := parseCondition(w.Dim.Value, w.Pattern.Value)
		if err != nil {
			c.fail(w.Pattern.Line, field, "%s", err)
			continue
		}
		if values := c.dimensions[w.Dim.Value]; values != nil {
			cond.values = values
			if !slices.ContainsFunc(keys(values), func(v string) bool { return conditionMatches(&cond, v) }) {
				c.fail(w.Pattern.Line, field, "%s cannot occur: it matches none of the declared values", Quote(w.Pattern.Value))
			}
		}
		if regexpLike.MatchString(w.Pattern.Value) && cond.kind != propertyIP {
			c.warn(w.Pattern.Line, field, "%s looks like a regular expression, and is compared as text: a pattern is an exact value, or a prefix followed by one *", Quote(w.Pattern.Value))
		}
		if cond.kind == propertyIP && cond.exact && strings.HasSuffix(w.Pattern.Value, ".0.0") {
			bits := 16
			if w.Pattern.Value == "0.0.0.0" {
				bits = 0
			}
			c.note(w.Pattern.Line, field, "%s is one address: a block has its bits behind it, such as %[1]s/%d", w.Pattern.Value, bits)
		}
		l.when = append(l.when, cond)
	}
}

func conditionMatches(c *condition, value string) bool {
	if c.exact {
		return value == c.prefix
	}
	return strings.HasPrefix(value, c.prefix)
}

// checkAddressTTL checks that buckets with hashed addresses do not outlive IPMaxTTL.
func (c *compiler) checkAddressTTL(spec *RuleSpec, l *Limit) {
	if !l.CountsAddresses() {
		return
	}
	lives := 2 * l.Params.Period
	switch l.Params.Algorithm {
	case bucket.AlgorithmTokenBucket:
		lives = l.Params.FullTime() + l.Params.Granule()
	case bucket.AlgorithmFixedWindow, bucket.AlgorithmCalendarWindow, bucket.AlgorithmSlidingLog:
		lives = l.Params.Period
	case bucket.AlgorithmConcurrency:
		lives = MaxHold.Microseconds()
	}
	if c.opts.IPMaxTTL > 0 && lives > c.opts.IPMaxTTL {
		line, field, shorten := spec.Rate.Line, "rate", "shorten the period, or "
		switch {
		case l.slots:
			line, field, shorten = spec.Slots.Line, "slots", ""
		case l.Params.Algorithm == bucket.AlgorithmTokenBucket:
			shorten = "shorten the period or the burst, or "
		}
		c.fail(line, field, "a hashed address would be kept for up to %s, and privacy.ip_max_ttl allows %s: %sset --privacy-ip-max-ttl %dh on purpose",
			micros(lives), micros(c.opts.IPMaxTTL), shorten, (lives-1)/time.Hour.Microseconds()+1)
	}
}

func micros(us int64) time.Duration {
	return (time.Duration(us) * time.Microsecond).Round(time.Second)
}

func (c *compiler) compileCosts(spec *RuleSpec, l *Limit) {
	read := func(t Text, field string) int64 {
		if !t.Set() {
			return 0
		}
		n, err := bucket.ParseDigits(t.Value)
		if err != nil || n < 1 || n > bucket.MaxCost {
			c.fail(t.Line, field, "%s is not a cost: write a whole number from 1 to %d", Quote(t.Value), bucket.MaxCost)
			return 0
		}
		return n
	}
	l.FixedCost, l.MaxCost = read(spec.Cost, "cost"), read(spec.MaxCost, "max_cost")
	if l.Action == ActionLimit && spec.Cost.Set() && spec.MaxCost.Set() {
		c.fail(spec.MaxCost.Line, "max_cost", "the limit charges every request the same cost, so no request can cost more: remove max_cost or cost")
	}
	if l.Params.Capacity == 0 {
		return
	}
	raise := "raise the burst"
	if l.Params.Algorithm != bucket.AlgorithmTokenBucket {
		raise = "raise COUNT of the rate"
	}
	if l.MaxCost > l.Params.Capacity {
		c.fail(spec.MaxCost.Line, "max_cost", "the limit holds %s, so a cost of %d could never be admitted: %s or lower max_cost", unitsText(l.Params.Capacity), l.MaxCost, raise)
	}
	if l.FixedCost > l.Params.Capacity {
		c.fail(spec.Cost.Line, "cost", "the limit holds %s, so a cost of %d could never be admitted: %s, or lower cost", unitsText(l.Params.Capacity), l.FixedCost, raise)
	}
}

// unitsText returns a number of units with the word.
func unitsText(n int64) string {
	if n == 1 {
		return "1 unit"
	}
	return fmt.Sprintf("%d units", n)
}
