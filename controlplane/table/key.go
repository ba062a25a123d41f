package table

import "strings"

// The keys of items. KeyShared is the key of the item that holds all of a limits file
// but plans and tenants. PrefixPlan and PrefixTenant begin the keys of plans and
// tenants, and their names follow. KeyCells is the key of the item that lists the cells
// that share the limits. PrefixRevision begins the keys of revisions: shared limits and
// plans that are tried on some tenants.
const (
	KeyShared      = "SHARED"
	PrefixPlan     = "PLAN#"
	PrefixTenant   = "TENANT#"
	KeyCells       = "CELLS"
	PrefixRevision = "REVISION#"
)

// IsPlan reports whether a key is a plan's.
func IsPlan(key string) bool { return named(key, PrefixPlan) }

// IsTenant reports whether a key is a tenant's.
func IsTenant(key string) bool { return named(key, PrefixTenant) }

// IsRevision reports whether a key is a revision's.
func IsRevision(key string) bool { return named(key, PrefixRevision) }

// IsPart reports whether a key is that of a part of a limits file.
func IsPart(key string) bool { return key == KeyShared || IsPlan(key) || IsTenant(key) }

// IsKey reports whether a key is the key of a limits item.
func IsKey(key string) bool { return IsPart(key) || key == KeyCells || IsRevision(key) }

func named(key, prefix string) bool {
	name, ok := strings.CutPrefix(key, prefix)
	return ok && name != ""
}

// Name returns the name in a key, as of the tenant or the plan.
func Name(key string) string {
	if _, name, ok := strings.Cut(key, "#"); ok {
		return name
	}
	return key
}
