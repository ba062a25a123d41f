package table

// Record is one change of a table, as read from its stream.
type Record struct {
	Sequence      string // increases from change to change of an item
	Before, After *Item  // nil if there was no item, or there is none any more
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

// Versioned reports whether the change is a limits item with a newer version than the
// limits item before, if there was one. Other changes do not change limits.
func (r *Record) Versioned() bool {
	return r.After != nil && r.After.IsLimits() && (r.Before == nil || !r.Before.IsLimits() || r.After.Version > r.Before.Version)
}

// Expired reports whether the change is the expiry of a tombstone.
func (r *Record) Expired() bool { return r.After == nil && (r.Before == nil || r.Before.Deleted) }
