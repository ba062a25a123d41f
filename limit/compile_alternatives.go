package limit

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Patterns that are most likely meant as several values, which no pattern can say.
var (
	// methodsTogether matches an op with several methods: GET|POST /x, (GET, POST) /x, or GET or POST.
	methodsTogether = regexp.MustCompile(`^\(?(` + anyCaseMethod + `)(?:(?:\s*[|,;]\s*|\s+or\s+)` + anyCaseMethod + `)+\)?(?:\s+(/.*)|\s*\*)?$`)
	// anyMethod matches an op with a word for all methods.
	anyMethod = regexp.MustCompile(`^(?i:any|all|every)\s+(/.*)$`)
	// severalOps matches ops that a mark separates.
	severalOps = regexp.MustCompile(`^((?:[A-Za-z]+ )?/[^|,;]*?)\s*(?:[|,;]|\sor\s)\s*((?:[A-Za-z]+ )?/[^|,;]*)`)
	// severalNames matches short values that a mark separates.
	severalNames = regexp.MustCompile(`^[\w.-]{1,32}(\s*[|,]\s*[\w.-]{1,32})+$`)
	// negation matches a value that is excepted, and negatedOp an op.
	negation  = regexp.MustCompile(`^!=?\s*(.+)$`)
	negatedOp = regexp.MustCompile(`^(?i:not)\s+(.+)$`)
	// inQuotes matches a value in quotes of its own.
	inQuotes = regexp.MustCompile(`^(?:"([^"]+)"|'([^']+)')$`)
)

// warnPatterns warns of conditions that hold for a value by the letter, and are meant in another way most likely.
func (c *compiler) warnPatterns() {
	warned, searched := map[entry]bool{}, 0
	var listed map[string]string // the tenants, by their names in small letters, once a condition needs them
	lists := func(tenant string) bool { return c.tenants[tenant] != nil }
	for _, l := range c.set.Limits {
		for i := range l.when {
			w := &l.when[i]
			if w.kind == propertyIP || w.values != nil || warned[l.entry()] {
				continue
			}
			if advice := notOneValue(w.name, w.text, lists); advice != "" {
				warned[l.entry()] = true
				c.warn(l.Line, "when."+w.name, "%s holds only for a value that is written so; %s", Quote(w.text), advice)
				continue
			}
			if w.kind != propertyTenant || !w.exact || lists(w.text) {
				continue
			}
			if listed == nil {
				listed = c.tenantsInSmallLetters()
			}
			if other := listed[strings.ToLower(w.text)]; other != "" {
				warned[l.entry()] = true
				c.warn(l.Line, "when.tenant", "%s is not listed, and %s is: capitals and small letters differ", Quote(w.text), Quote(other))
				continue
			}
			if searched++; searched > mostNearTenants {
				continue
			}
			if near := c.nearTenant(w.text); near != "" {
				warned[l.entry()] = true
				c.note(l.Line, "when.tenant", "%s is not listed; did you mean %s?", Quote(w.text), near)
			}
		}
	}
}

// tenantsInSmallLetters returns the listed tenants by their names in small letters.
func (c *compiler) tenantsInSmallLetters() map[string]string {
	listed := make(map[string]string, len(c.tenants))
	for tenant := range c.tenants {
		listed[strings.ToLower(tenant)] = tenant
	}
	return listed
}

// mostNearTenants bounds the conditions for whose tenants near names are searched, among up to mostSearched.
const mostNearTenants = 16

// nearTenant returns the listed tenant that a name is a misspelling of, or "". Tenants that differ in digits alone,
// such as shop-1 and shop-2, are others.
func (c *compiler) nearTenant(name string) string {
	if len(c.tenants) > mostSearched {
		return ""
	}
	near := Nearest(name, keys(c.tenants))
	if withoutDigits.Replace(near) == withoutDigits.Replace(name) {
		return ""
	}
	return near
}

// notOneValue returns advice about a pattern that is most likely meant as several values, or as all values but
// one, or "". Lists reports whether the file lists a tenant.
func notOneValue(dim, pattern string, lists func(tenant string) bool) string {
	if dim == "tenant" && lists(pattern) {
		return ""
	}
	m := negation.FindStringSubmatch(pattern)
	if m == nil && dim == "op" {
		m = negatedOp.FindStringSubmatch(pattern)
	}
	if m != nil {
		return "a condition cannot say not: write a limit for all, and a more specific one, or one with action: allow, for " + Quote(m[1])
	}
	if m := inQuotes.FindStringSubmatch(pattern); m != nil {
		return "its quotes are a part of the value: write when: {" + dim + ": " + strconv.Quote(cmp.Or(m[1], m[2])) + "}"
	}
	if network, err := netip.ParsePrefix(pattern); err == nil {
		return "a network is a condition on ip: when: {ip: " + network.String() + "}"
	}
	if dim == "op" {
		return notOneOp(pattern)
	}
	if rest, found := strings.CutPrefix(pattern, "~"); found && rest != "" && dim == "tenant" {
		return "the ~ belongs to a file of users alone: write when: {tenant: " + Quote(rest) + "}"
	}
	if words := strings.Fields(pattern); dim == "tenant" && len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool { return !lists(w) }) {
		return forEach(dim, words[0], words[1])
	}
	if !severalNames.MatchString(pattern) {
		return ""
	}
	values := splitValues(pattern)
	switch {
	case dim == "user" && !strings.Contains(pattern, ","): // providers of identities write auth0|123
		return ""
	case dim == "tenant" && !strings.Contains(pattern, ",") && !slices.ContainsFunc(values, lists):
		return ""
	}
	return forEach(dim, values[0], values[1])
}

// warnDeclared warns of a declared value that is most likely meant as several. IsAlone reports that the dimension has no other one.
func (c *compiler) warnDeclared(dim, value Text, isAlone bool) {
	switch {
	case strings.HasSuffix(value.Value, "*"):
		c.warn(value.Line, "dimensions."+dim.Value, "%s is the value %[1]s alone, as values are exact: write each that begins so, or leave values out", Quote(value.Value))
	case isAlone && strings.Contains(value.Value, ",") && severalNames.MatchString(value.Value): // others may be such as "Berlin,DE"
		c.note(value.Line, "dimensions."+dim.Value, "%s is one value: write [%s] if several are meant", Quote(value.Value), strings.Join(splitValues(value.Value), ", "))
	}
}

// alternation matches an op with alternatives in brackets, as regular expressions and globs have them.
var alternation = regexp.MustCompile(`^([^(){}|,]*/[^(){}|,]*)(?:\(([\w./-]+)\|([\w./-]+)(?:\|[\w./-]+)*\)|\{([\w./-]+)[|,] ?([\w./-]+)(?:[|,] ?[\w./-]+)*\})(.*)$`)

// notOneOp does the same for an op.
func notOneOp(op string) string {
	if m := methodsTogether.FindStringSubmatch(op); m != nil {
		methods, path := strings.FieldsFunc(strings.ReplaceAll(strings.ToUpper(strings.TrimSuffix(op, m[2])), " OR ", "|"), func(r rune) bool { return !unicode.IsLetter(r) }), cmp.Or(m[2], "*")
		return forEach("op", methods[0]+" "+path, methods[1]+" "+path)
	}
	if m := anyMethod.FindStringSubmatch(op); m != nil {
		return forEach("op", "GET "+m[1], "POST "+m[1])
	}
	if m := severalOps.FindStringSubmatch(op); m != nil {
		second := m[2]
		if method, _, _ := strings.Cut(m[1], " "); IsMethod(method) && strings.HasPrefix(second, "/") {
			second = method + " " + second
		}
		return forEach("op", m[1], second)
	}
	if m := alternation.FindStringSubmatch(op); m != nil {
		return forEach("op", m[1]+m[2]+m[4]+m[6], m[1]+m[3]+m[5]+m[6])
	}
	return ""
}

// splitValues returns the values that marks separate.
func splitValues(text string) (values []string) {
	for v := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '|' || r == ',' }) {
		values = append(values, strings.TrimSpace(v))
	}
	return values
}

func forEach(dim, first, second string) string {
	return fmt.Sprintf("a pattern is one value: write a limit for each, with when: {%s: %s} and when: {%[1]s: %[3]s}", dim, Quote(first), Quote(second))
}
