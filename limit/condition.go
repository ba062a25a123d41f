package limit

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// condition is one entry of `when`: a dimension and the pattern that its value has to
// match.
type condition struct {
	property
	text   string
	exact  bool         // the whole value; else a prefix
	prefix string       // the value, or its beginning
	net    netip.Prefix // for ip: the addresses
}

// regexpLike matches patterns that are most likely meant as regular expressions.
var regexpLike = regexp.MustCompile(`^/?\^|^~\*? ?[/^]|\$$|[/ ]\.\+$|[/ ]\.\*$|\\[dwsDWS.]|\[\^|\(\?|\]\+|\(\.[+*]\)`)

// wildcard matches addresses as people write a block of them elsewhere.
var wildcard = regexp.MustCompile(`^((?:[0-9]{1,3}\.){1,3})(?:\*\.?){1,3}$`)

// parseCondition reads a `when` entry.
func parseCondition(dim, pattern string) (condition, error) {
	c := condition{property: propertyOf(dim), text: pattern}
	if c.kind == propertyIP {
		return c, c.parseNet(pattern)
	}
	if pattern == "" {
		return c, errors.New("an empty pattern matches nothing: write a value, a prefix followed by *, or leave the condition out")
	}
	c.prefix, c.exact = pattern, true
	if before, found := strings.CutSuffix(pattern, "*"); found {
		c.prefix, c.exact = before, false
	}
	if strings.Contains(c.prefix, "*") {
		if regexpLike.MatchString(pattern) {
			return c, fmt.Errorf("%s looks like a regular expression: a pattern is an exact value, or a prefix followed by one *", Quote(pattern))
		}
		return c, fmt.Errorf("a * may stand only at the end of a pattern: write %s", c.withoutStar())
	}
	return c, nil
}

// withoutStar returns the advice for a pattern that has a * before its end.
func (c *condition) withoutStar() string {
	before, after, _ := strings.Cut(c.text, "*")
	switch template := strings.ReplaceAll(c.text, "/*/", "/{id}/"); {
	case c.kind == propertyOp && !strings.Contains(template, "*"):
		return fmt.Sprintf("the template of the route, such as %s, or a prefix followed by one *, such as %s", Quote(template), Quote(before+"*"))
	case before != "":
		return "the exact value, or a prefix followed by one *, such as " + Quote(before+"*")
	case c.kind == propertyOp && strings.HasPrefix(strings.TrimLeft(after, " "), "/") && !strings.Contains(strings.TrimSuffix(after, "*"), "*"):
		path := strings.TrimLeft(after, " ")
		return fmt.Sprintf("a limit for each method, with when: {op: %s} and when: {op: %s}", Quote("GET "+path), Quote("POST "+path))
	case c.kind == propertyOp:
		return `a limit for each op, or for those that begin alike, such as when: {op: "POST /v1/export*"}`
	default:
		return "a limit for each value"
	}
}

func (c *condition) parseNet(pattern string) error {
	if addr, err := ParseAddr(pattern); err == nil {
		c.net, c.exact = netip.PrefixFrom(addr, addr.BitLen()), true
		return nil
	}
	block, err := netip.ParsePrefix(pattern)
	if m := wildcard.FindStringSubmatch(pattern); m != nil {
		octets := strings.Count(m[1], ".")
		return fmt.Errorf("%s is no block in CIDR form: write %s%s/%d", Quote(pattern), m[1], strings.TrimSuffix(strings.Repeat("0.", 4-octets), "."), 8*octets)
	}
	switch mapped := err == nil && block.Addr().Is4In6(); {
	case mapped && block.Bits() >= 96:
		return fmt.Errorf("%s is no block in CIDR form: write %s", Quote(pattern), netip.PrefixFrom(block.Addr().Unmap(), block.Bits()-96).Masked())
	case err != nil || mapped:
		if reason := notBlock(pattern); reason != "" {
			return fmt.Errorf("%s is no block in CIDR form: %s", Quote(pattern), reason)
		}
		return fmt.Errorf("%s is no address and no block in CIDR form: write for example 203.0.113.7 or 2001:db8::/32", Quote(pattern))
	}
	c.net = block.Masked()
	if c.net != block {
		return fmt.Errorf("%s has bits behind its prefix: write %s, or the address alone", block, c.net)
	}
	c.exact = block.IsSingleIP()
	return nil
}

// notBlock says what to write in the place of an exception, a range or a block of too many bits, or returns "".
func notBlock(pattern string) string {
	first, last, isRange := strings.Cut(pattern, "-")
	from, errFrom := ParseAddr(strings.TrimSpace(first))
	to, errTo := ParseAddr(strings.TrimSpace(last))
	addr, bits, _ := strings.Cut(pattern, "/")
	base, errBase := ParseAddr(addr)
	switch n, err := strconv.Atoi(bits); {
	case pattern == "*":
		return "leave the condition out, as every address is meant without it"
	case strings.HasPrefix(pattern, "!"):
		return "no condition leaves addresses out: write the limit without it, and one for " + Quote(strings.TrimSpace(pattern[1:])) + " with action: allow"
	case isRange && errFrom == nil && errTo == nil:
		return insteadOfRange(from, to)
	case errBase == nil && base.Is4() && bitsOfMask(bits) >= 0:
		return fmt.Sprintf("write %s", netip.PrefixFrom(base, bitsOfMask(bits)).Masked())
	case errBase == nil && err == nil && n > base.BitLen():
		return fmt.Sprintf("the address has %d bits, so write /%[1]d or less", base.BitLen())
	case strings.Contains(pattern, " ") && IsBlock(blanksOfBlock.Replace(strings.TrimSpace(pattern))):
		return "write " + blanksOfBlock.Replace(strings.TrimSpace(pattern)) + ", without blanks"
	case IsBlock(withoutPort(pattern, "")):
		return "write " + withoutPort(pattern, "") + ", without the port"
	}
	if blocks := strings.FieldsFunc(pattern, func(c rune) bool { return strings.ContainsRune(",;| ", c) }); len(blocks) > 1 && IsBlock(blocks[0]) && IsBlock(blocks[1]) {
		return fmt.Sprintf("one address or block belongs here: write a limit for each, with when: {ip: %s} and when: {ip: %s}", blocks[0], blocks[1])
	}
	return ""
}

// blanksOfBlock removes blanks around the slash of a block.
var blanksOfBlock = strings.NewReplacer(" / ", "/", " /", "/", "/ ", "/")

// IsBlock reports whether text is an address, or a block of addresses in CIDR form. It may be called concurrently.
func IsBlock(text string) bool {
	if _, err := ParseAddr(text); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(text)
	return err == nil
}

func (c *condition) holds(req *Request) bool {
	if c.kind == propertyIP {
		return req.Addr.IsValid() && c.net.Contains(req.Addr)
	}
	v, ok := c.value(req)
	if !ok {
		return false
	}
	if c.exact {
		return v == c.prefix
	}
	return strings.HasPrefix(v, c.prefix)
}

// length returns the length of the pattern, in bytes of a prefix or bits of a block: the
// limit with the longer pattern wins.
func (c *condition) length() int {
	if c.kind == propertyIP {
		return c.net.Bits()
	}
	return len(c.prefix)
}

// meets reports whether some value satisfies both conditions, which are on the same
// dimension.
func (c *condition) meets(other *condition) bool {
	switch {
	case c.kind == propertyIP:
		return c.net.Overlaps(other.net)
	case c.exact && other.exact:
		return c.prefix == other.prefix
	case c.exact:
		return strings.HasPrefix(c.prefix, other.prefix)
	case other.exact:
		return strings.HasPrefix(other.prefix, c.prefix)
	default:
		return strings.HasPrefix(c.prefix, other.prefix) || strings.HasPrefix(other.prefix, c.prefix)
	}
}

// within reports whether all values that satisfy c satisfy other, which is on the same dimension.
func (c *condition) within(other *condition) bool {
	return c.meets(other) && c.length() >= other.length() && (c.exact || !other.exact)
}

// compareRank orders limits of one group. It is negative if a is more specific and
// applies where both match, and 0 for a tie.
func compareRank(a, b *Limit) int {
	if a.layer != b.layer {
		return int(b.layer) - int(a.layer)
	}
	if len(a.when) != len(b.when) {
		return len(b.when) - len(a.when)
	}
	exactA, lengthA := a.specificity()
	exactB, lengthB := b.specificity()
	if exactA != exactB {
		return exactB - exactA
	}
	return lengthB - lengthA
}

func (l *Limit) specificity() (exact, length int) {
	for i := range l.when {
		if l.when[i].exact {
			exact++
		}
		length += l.when[i].length()
	}
	return exact, length
}

// canMeet reports whether one request could match both limits.
func canMeet(a, b *Limit) bool {
	for i := range a.when {
		for j := range b.when {
			if a.when[i].name == b.when[j].name && !a.when[i].meets(&b.when[j]) {
				return false
			}
		}
	}
	return true
}
