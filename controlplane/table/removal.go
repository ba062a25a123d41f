package table

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Removal counts removals that are easily made by mistake, such as those of a truncated
// file.
type Removal struct {
	Tenants, OfTenants int
	Plans, OfPlans     int
	Emptied            int      // plans that lose all their limits but are not deleted
	DefaultPlan        string   // the removed one; "" if there still is one or was none
	Shared             []string // the ids of removed shared limits
}

// freeTenants is the share of the tenants, one in freeTenants, that may be deleted
// without confirming the count; one tenant always may.
const freeTenants = 10

// mostFreeTenants bounds that number in a large table.
const mostFreeTenants = 100

// RemovalOf returns what changes of items remove.
func RemovalOf(items map[string]Item, changes []Change) (r Removal) {
	for key := range items {
		switch it := live(items, key); {
		case it == nil || !it.IsLimits():
		case IsTenant(key):
			r.OfTenants++
		case IsPlan(key):
			r.OfPlans++
		}
	}
	for i := range changes {
		switch c := &changes[i]; {
		case c.Before == nil || !c.Before.IsLimits(): // no proxy uses it
		case c.Key == KeyShared:
			r.removeShared(c)
		case IsPlan(c.Key) && c.After != nil && isEmpty(c.After) && !isEmpty(c.Before.Body):
			r.Emptied++
		case c.After != nil:
		case IsTenant(c.Key):
			r.Tenants++
		case IsPlan(c.Key):
			r.Plans++
		}
	}
	return r
}

// isEmpty reports whether a plan has no limits.
func isEmpty(body json.RawMessage) bool {
	var limits []json.RawMessage
	return json.Unmarshal(body, &limits) == nil && len(limits) == 0
}

// removeShared counts the removals in a change of KeyShared.
func (r *Removal) removeShared(c *Change) {
	type part struct {
		DefaultPlan any                `json:"default_plan"`
		Shared      []struct{ ID any } `json:"shared"`
	}
	var before, after part
	if json.Unmarshal(c.Before.Body, &before) != nil || c.After != nil && json.Unmarshal(c.After, &after) != nil {
		return // an unreadable body has no limits
	}
	if before.DefaultPlan != nil && after.DefaultPlan == nil {
		r.DefaultPlan = fmt.Sprint(before.DefaultPlan)
	}
	there := map[any]bool{}
	for _, l := range after.Shared {
		there[fmt.Sprint(l.ID)] = true
	}
	for _, l := range before.Shared {
		if id := fmt.Sprint(l.ID); !there[id] {
			r.Shared = append(r.Shared, id)
		}
	}
}

// Count returns the number of removals.
func (r *Removal) Count() int {
	n := r.Tenants + r.Plans + r.Emptied + len(r.Shared)
	if r.DefaultPlan != "" {
		n++
	}
	return n
}

// IsLarge reports whether people must confirm the count. They must if the changes
// remove the default plan, a shared limit, more than one plan or the only one, all
// limits of a plan, or more than one tenant and more than a tenth of them or
// mostFreeTenants.
func (r *Removal) IsLarge() bool {
	return r.DefaultPlan != "" || len(r.Shared) > 0 || r.Emptied > 0 || r.Plans > 1 || r.Plans == 1 && r.OfPlans == 1 ||
		r.Tenants > 1 && r.Tenants > min(r.OfTenants/freeTenants, mostFreeTenants)
}

// String describes the removals for people.
func (r *Removal) String() string {
	var parts []string
	if r.DefaultPlan != "" {
		parts = append(parts, "the default plan ("+Printable(r.DefaultPlan)+")")
	}
	if n := len(r.Shared); n > 0 {
		parts = append(parts, fmt.Sprintf("%s (%s)", Counted(n, "shared limit"), Printable(strings.Join(r.Shared[:min(n, 5)], ", "))))
	}
	if r.Plans > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d plans", r.Plans, r.OfPlans))
	}
	if r.Emptied > 0 {
		parts = append(parts, "all limits of "+Counted(r.Emptied, "plan"))
	}
	if r.Tenants > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d tenants", r.Tenants, r.OfTenants))
	}
	return strings.Join(parts, ", ")
}

// Counted returns a number of things: 1 plan, 2 plans.
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
