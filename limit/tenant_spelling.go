package limit

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxSpelled is the number of listed tenants up to which ListedAs compares all of them: a client may ask often.
const maxSpelled = 1000

// ListedAs returns the listed tenant that a tenant which is not listed equals but for blanks around it and the case of
// letters, or "": of several for which may is true the first by name. Of more than maxSpelled listed tenants it finds those in small
// letters alone.
func (s *Set) ListedAs(tenant string, may func(listed string) bool) (first string) {
	if s.Lists(tenant) {
		return ""
	}
	if small := s.ListedInSmall(tenant); small != "" && may(small) {
		return small
	}
	if s.Tenants() > maxSpelled {
		return ""
	}
	tenant = strings.TrimSpace(tenant)
	for listed := range s.tenants.all() {
		if strings.EqualFold(listed, tenant) && (first == "" || listed < first) && may(listed) {
			first = listed
		}
	}
	return first
}

// ListedNear returns the listed tenant, of those for which may is true, of whose name that of a tenant which is not listed is most likely
// a misspelling, or "". Of more than maxSpelled listed tenants it finds none.
func (s *Set) ListedNear(tenant string, may func(listed string) bool) string {
	if s.Lists(tenant) || s.Tenants() > maxSpelled || len(tenant) < minSpelled {
		return ""
	}
	near := s.listedWithin(tenant, 1, may)
	if near == "" && len(tenant) >= twiceSpelled {
		near = s.listedWithin(tenant, 2, may)
	}
	if withoutDigits.Replace(near) == withoutDigits.Replace(tenant) { // such as shop-1 and shop-2, which are others
		return ""
	}
	return near
}

// listedWithin returns the first listed tenant by name, of those for which may is true, that becomes another one by a number of edits, or
// "".
func (s *Set) listedWithin(tenant string, edits int, may func(listed string) bool) (first string) {
	for listed := range s.tenants.all() {
		if n := len(listed) - len(tenant); max(n, -n) > utf8.UTFMax*edits {
			continue
		}
		if (first == "" || listed < first) && isWithin(listed, tenant, edits) && may(listed) {
			first = listed
		}
	}
	return first
}

// ListedInSmall returns the listed tenant that a tenant which is not listed becomes without blanks around it, as it is
// or in small letters, or "". It allocates nothing for tenants that are listed, or in small letters.
func (s *Set) ListedInSmall(tenant string) string {
	if s.Lists(tenant) {
		return ""
	}
	trimmed := strings.TrimSpace(tenant)
	small := strings.ToLower(trimmed)
	switch {
	case small == tenant:
		return ""
	case s.Lists(trimmed):
		return trimmed
	case s.Lists(small):
		return small
	}
	return ""
}

// warnBlanks warns of a tenant with blanks around its name, which no request is likely to have.
func (c *compiler) warnBlanks(name Text, field string) {
	if trimmed := strings.TrimSpace(name.Value); trimmed != name.Value {
		c.warn(name.Line, field, "it is the tenant of exactly that name, with its blanks: requests for %s are of another one", Quote(trimmed))
	}
}

// noteCase notes once for a file that listed tenants differ in the case of letters alone: a request is of the one in its own
// letters. Capitals are the tenants with capital letters.
func (c *compiler) noteCase(capitals []Text) {
	inSmall := make(map[string]string, len(capitals))
	var first Text
	other, more := "", 0
	for _, name := range capitals {
		small := strings.ToLower(name.Value)
		like := inSmall[small]
		if like == "" && c.tenants[small] != nil {
			like = small
		}
		switch {
		case like == "":
			inSmall[small] = name.Value
		case other == "":
			first, other = name, like
		default:
			more++
		}
	}
	if other == "" {
		return
	}
	others := ""
	if more > 0 {
		others = fmt.Sprintf("; there are %d more such pairs", more)
		if more == 1 {
			others = "; there is 1 more such pair"
		}
	}
	c.note(first.Line, "tenants."+first.Value, "it differs from tenant %s in the case of letters alone: these are two tenants, and a request is of the one in its own letters%s", Quote(other), others)
}
