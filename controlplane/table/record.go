package table

// Record is one change of a table, as its stream tells it.
type Record struct {
	Sequence      string // grows from change to change of an item
	Before, After *Item  // nil where there was none, or is none any more
}

// Key returns the key of the item that was changed.
func (r *Record) Key() string {
	if r.After != nil {
		return r.After.Key
	}
	if r.Before != nil {
		return r.Before.Key
	}
	return ""
}

// Versioned reports whether the change is one of limits that says who made it, and is of a newer
// version than the item of limits before, if there was one: no other changes limits.
func (r *Record) Versioned() bool {
	return r.After != nil && r.After.IsLimits() && (r.Before == nil || !r.Before.IsLimits() || r.After.Version > r.Before.Version)
}

// Expired reports whether it is a tombstone whose time was up.
func (r *Record) Expired() bool { return r.After == nil && (r.Before == nil || r.Before.Deleted) }
