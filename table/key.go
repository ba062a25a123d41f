package table

import "strings"

// KeyShared is the key of the item that holds all but plans and tenants; PrefixPlan and
// PrefixTenant begin the keys of the others, and their names follow.
const (
	KeyShared    = "SHARED"
	PrefixPlan   = "PLAN#"
	PrefixTenant = "TENANT#"
)

// IsPlan reports whether a key is a plan's.
func IsPlan(key string) bool {
	name, ok := strings.CutPrefix(key, PrefixPlan)
	return ok && name != ""
}

// IsTenant reports whether a key is a tenant's.
func IsTenant(key string) bool {
	name, ok := strings.CutPrefix(key, PrefixTenant)
	return ok && name != ""
}

// IsKey reports whether a key can be an item's.
func IsKey(key string) bool { return key == KeyShared || IsPlan(key) || IsTenant(key) }

// Name returns the name in a key: of the tenant or the plan.
func Name(key string) string {
	if _, name, ok := strings.Cut(key, "#"); ok {
		return name
	}
	return key
}
