package limit

import (
	"net"
	"slices"
	"strconv"
	"strings"
)

// ValueSpelling is how the value of a dimension differs from the one that it most likely means.
type ValueSpelling struct {
	Dim, Meant string // Meant is the value of a condition, as the limits file has it
	Limit      *Limit // with that condition
	Reason     string // the difference, in words
}

// valueSpelling returns how a value of a dimension differs from another spelling of it that conditions of limits take for another value,
// as those of a host with its port or in capitals. Holds reports that some condition on that dimension holds, and there is no other spelling then.
func (l *Limit) valueSpelling(name, value string) (s ValueSpelling, holds, found bool) {
	for i := range l.when {
		c := &l.when[i]
		if c.kind != propertyExtra || c.name != name {
			continue
		}
		if conditionMatches(c, value) {
			return s, true, false
		}
		if reason := differenceOfValues(value, c); reason != "" {
			s, found = ValueSpelling{name, c.text, l, reason}, true
		}
	}
	return s, false, found
}

// differenceOfValues returns how a value differs from the one of a condition that it most likely means, or "".
func differenceOfValues(value string, c *condition) string {
	means := func(v string) bool {
		if c.exact {
			return strings.EqualFold(v, c.prefix)
		}
		return len(v) >= len(c.prefix) && strings.EqualFold(v[:len(c.prefix)], c.prefix)
	}
	trimmed := strings.TrimSpace(value)
	host := withoutPort(trimmed, c.name)
	switch {
	case means(value):
		return "small letters and capitals differ"
	case means(trimmed):
		return "there are blanks around it"
	case host != "" && means(host):
		return "it has a port"
	case strings.HasSuffix(trimmed, ".") && means(strings.TrimSuffix(trimmed, ".")):
		return "it ends with a dot"
	}
	return ""
}

// withoutPort returns the host of a value that is a host with its port, or "". Other values have a colon, too, such as user:42, so that a
// host without a dot is one if the name of the dimension says so.
func withoutPort(value, dim string) string {
	if !strings.Contains(value, ":") { // without the memory of an error
		return ""
	}
	host, port, err := net.SplitHostPort(value)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return ""
	}
	if strings.ContainsAny(host, ".:") || host == "localhost" || strings.Contains(strings.ToLower(dim), "host") {
		return host
	}
	return ""
}

// HasValues reports whether l has a condition on a dimension besides tenant, op and ip. A limit of mode off has none.
func (l *Limit) HasValues() bool {
	return l.Mode != ModeOff && slices.ContainsFunc(l.when, func(c condition) bool { return c.kind == propertyExtra })
}

// ValueSpellings returns, of the dimensions of a request, those whose values are other spellings of the values of conditions, where no
// condition of a limit on that dimension holds. Limits of mode off do not count.
func ValueSpellings(req *Request, limits []*Limit) (all []ValueSpelling) {
	for i := range req.Dims {
		var of ValueSpelling
		held := false
		for _, l := range limits {
			if l.Mode == ModeOff {
				continue
			}
			s, holds, found := l.valueSpelling(req.Dims[i].Name, req.Dims[i].Value)
			if held = holds; held {
				break
			}
			if found {
				of = s
			}
		}
		if !held && of.Reason != "" {
			all = append(all, of)
		}
	}
	return all
}
