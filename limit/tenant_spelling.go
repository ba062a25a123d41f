package limit

import "strings"

// ListedAs returns the listed tenant that a tenant which is not listed equals but for blanks around it and the case of
// letters, or "". It compares all listed tenants.
func (s *Set) ListedAs(tenant string) string {
	if s.Lists(tenant) {
		return ""
	}
	if small := s.ListedInSmall(tenant); small != "" {
		return small
	}
	tenant = strings.TrimSpace(tenant)
	for listed := range s.tenants.all() {
		if strings.EqualFold(listed, tenant) {
			return listed
		}
	}
	return ""
}

// ListedInSmall returns the listed tenant that a tenant which is not listed becomes without blanks around it, as it is
// or in small letters, or "". It allocates nothing for tenants in small letters.
func (s *Set) ListedInSmall(tenant string) string {
	trimmed := strings.TrimSpace(tenant)
	small := strings.ToLower(trimmed)
	switch {
	case small == tenant || s.Lists(tenant):
		return ""
	case s.Lists(trimmed):
		return trimmed
	case s.Lists(small):
		return small
	}
	return ""
}
