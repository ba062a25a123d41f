package limit

import (
	"slices"
	"time"

	"github.com/limitgate/limitgate/limit/bucket"
)

// Limit is one compiled rule: its dimensions, its conditions and its rate. It never
// changes once its Set is compiled.
type Limit struct {
	ID        string
	Plan      string // the plan that has it; "" for shared limits
	Tenant    string // the tenant that overrides it, or ""
	Line      int    // its line in the limits file
	Order     int    // breaks ties between verdicts: limits of plans first, with an override in the place of its limit, then the shared limits
	Ordinal   int    // index of ID in Set.IDs
	Group     string // limits of one level and group compete
	Mode      Mode
	Action    Action
	OnError   OnError
	Missing   Missing
	Rate      bucket.Rate    // its Text is that of all cells together
	Zone      *time.Location // of calendar windows
	Params    bucket.Params
	Undivided bucket.Params // of all cells together, if the limit is from a file; Rate and Params are this cell's part
	RoundedUp bool          // the parts of all cells add up to more than the limit, since each part admits at least one unit
	MaxCost   int64         // largest cost admitted, 0 where none is declared
	FixedCost int64         // the cost of every request here, 0 for the request's own cost
	Replaces  []string
	Lease     Lease
	Store     Placement

	calendar *bucket.Calendar
	by       []dimension // without tenant, in order of their names
	byTenant bool
	field    bool // the bucket is a field of its tenant's string
	when     []condition
	suffix   string // ":id;code": the name behind the tag
	slots    bool   // it counts slots, or overrides a limit that does: it applies to RL.ACQUIRE alone
	// everyLevel reports that the limit allows, and has no by: it lifts the limits of every level and group.
	everyLevel bool
	layer      int8 // shared, plan or override: the higher beats the lower
	onErrSet   bool // the file sets on_error
	missSet    bool // the file sets missing
	// share is the part of the buckets in which the limit is enforced, in percentParts, and the others
	// are watched by shadowed, which is made on demand; 0 is no such part. shareBits tell clients
	// apart.
	share     int
	shareBits Prefixes
	shadowed  *Limit
	warn      int  // the part of the capacity in use from which it warns, in percentParts; 0 is never
	broken    bool // a mistake in what it competes by, or its id is taken: it is not compared
}

// The layers of a limit, in ascending order of precedence.
const (
	layerShared = iota
	layerPlan
	layerOverride
)

// dimension is one element of `by`: a dimension, or a chain of dimensions of which the
// first one present counts.
type dimension struct {
	text    string // as written: "op", "api_key|user|ip"
	label   string // ";op": stands before the value in a bucket's name
	choices []property
}

// property is one property of a request.
type property struct {
	kind   propertyKind
	name   string          // of an extra dimension
	label  string          // "=" or, in a chain, "=0:", which is the number of the choice
	values map[string]bool // the declared values, nil if all values are valid
	hashed bool            // names of buckets have a hash of the value
}

type propertyKind uint8

const (
	propertyTenant propertyKind = iota
	propertyOp
	propertyIP
	propertyExtra
)

func propertyOf(name string) property {
	switch name {
	case "tenant":
		return property{kind: propertyTenant, name: name}
	case "op":
		return property{kind: propertyOp, name: name}
	case "ip":
		return property{kind: propertyIP, name: name}
	default:
		return property{kind: propertyExtra, name: name}
	}
}

// value returns the request's value of the property. An ip has no text: the value is ""
// and only its presence is reported.
func (p *property) value(req *Request) (string, bool) {
	switch p.kind {
	case propertyTenant:
		return req.Tenant, req.Tenant != ""
	case propertyOp:
		return req.Op, req.Op != "" && p.declared(req.Op)
	case propertyIP:
		return "", req.Addr.IsValid()
	default:
		v, ok := req.Dimension(p.name)
		return v, ok && p.declared(v)
	}
}

// sent returns the value of an op or an extra dimension, declared or not, or "".
func (p *property) sent(req *Request) string {
	switch p.kind {
	case propertyOp:
		return req.Op
	case propertyExtra:
		v, _ := req.Dimension(p.name)
		return v
	}
	return ""
}

func (p *property) declared(value string) bool { return p.values == nil || p.values[value] }

// pick returns the first choice that the request has.
func (d *dimension) pick(req *Request) (*property, string, bool) {
	for i := range d.choices {
		if v, ok := d.choices[i].value(req); ok {
			return &d.choices[i], v, true
		}
	}
	return nil, "", false
}

// countsHash reports whether the name of the bucket of the limit for the request has a hash with the secret.
func (l *Limit) countsHash(req *Request) bool {
	return slices.ContainsFunc(l.by, func(d dimension) bool {
		choice, _, ok := d.pick(req)
		return ok && choice.isHashed()
	})
}

// isHashed reports whether names of buckets have a hash, with the secret, of the property.
func (p *property) isHashed() bool { return p.kind == propertyIP || p.hashed }

// missing returns the first dimension of the limit that the request lacks, or nil.
func (l *Limit) missing(req *Request) *dimension {
	for i := range l.by {
		if _, _, ok := l.by[i].pick(req); !ok {
			return &l.by[i]
		}
	}
	return nil
}

// matches reports whether every `when` condition of l holds for the request.
func (l *Limit) matches(req *Request) bool {
	for i := range l.when {
		if !l.when[i].holds(req) {
			return false
		}
	}
	return true
}

// Bounds returns the window boundaries around now, in microseconds, or nil for a limit
// without calendar windows.
func (l *Limit) Bounds(now int64) *bucket.Bounds {
	if l.calendar == nil {
		return nil
	}
	return l.calendar.Bounds(now)
}

// FixedField reports whether all buckets of l are fields of the same name, each in its
// tenant's string.
func (l *Limit) FixedField() bool { return l.field && len(l.by) == 0 }

// SpansTenants reports whether buckets of l span tenants.
func (l *Limit) SpansTenants() bool { return !l.byTenant }

// Level returns the names of the dimensions by which l counts.
func (l *Limit) Level() []string {
	var names []string
	if l.byTenant {
		names = append(names, "tenant")
	}
	for _, d := range l.by {
		names = append(names, d.text)
	}
	return names
}

// CountsAddresses reports whether a bucket's name may hold a hashed address.
func (l *Limit) CountsAddresses() bool {
	return l.countsSome(func(p *property) bool { return p.kind == propertyIP })
}

// CountsHashes reports whether a bucket's name may hold a hash with the secret: of an address, or of a dimension
// that is declared so.
func (l *Limit) CountsHashes() bool { return l.countsSome((*property).isHashed) }

// hashedDims returns the declared dimensions of which names of buckets have a hash.
func (l *Limit) hashedDims() (names []string) {
	l.countsSome(func(p *property) bool {
		if p.hashed {
			names = append(names, p.name)
		}
		return false
	})
	return names
}

// countsSome reports whether the limit counts by a property.
func (l *Limit) countsSome(is func(*property) bool) bool {
	for _, d := range l.by {
		for i := range d.choices {
			if is(&d.choices[i]) {
				return true
			}
		}
	}
	return false
}

// RefundCost returns the units that a refund of req's cost returns. The cost may be above
// the largest admitted one. The result is at most twice the capacity: what a bucket can
// hold plus the largest debt.
func (l *Limit) RefundCost(req *Request) int64 {
	if l.FixedCost > 0 {
		return l.FixedCost
	}
	return min(req.Cost, 2*l.Params.Capacity)
}

// cost returns the cost of req in this limit. A cost above the declared maximum becomes
// one that no bucket of this limit can hold.
func (l *Limit) cost(req *Request) int64 {
	switch {
	case l.Params.Algorithm == bucket.AlgorithmConcurrency:
		return 1 // a slot
	case l.FixedCost > 0:
		return l.FixedCost
	case l.MaxCost > 0 && req.Cost > l.MaxCost:
		return l.Params.Capacity + 1
	default:
		return req.Cost
	}
}
