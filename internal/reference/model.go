package reference

import "fmt"

// Model decides requests one after the other by a limits file. It is not safe for
// concurrent use.
type Model struct {
	limits  *limits
	buckets map[string]*entry
	records map[recordID]*record
	// holders counts the requests that hold slots, to number them.
	holders int64
	last    account
}

// Request is one request for a decision. An empty string means none.
type Request struct {
	Tenant, Op, IP string
	Dims           map[string]string
	Cost           int64
	ID             string
}

// Decision is the answer to a request.
type Decision struct {
	Allowed bool
	// Limit is the capacity of the limit that bound the decision, and Remaining its
	// remaining units. Both are -1 when no limit matched.
	Limit, Remaining int64
	// RetryAfter is the true wait in milliseconds: 0 when allowed, -1 for never.
	RetryAfter int64
	// ResetAfter is how long the bucket takes to be full again, in milliseconds.
	ResetAfter int64
	// LimitID is empty when no limit matched.
	LimitID string
	// Policy is set if no bucket decided: no limit matched, a ban, or a missing dimension
	// that its limit denies.
	Policy bool
}

// The commands for a decision.
type command string

const (
	check   command = "CHECK"
	peek    command = "PEEK"
	reserve command = "RESERVE"
	acquire command = "ACQUIRE"
)

const (
	// repeatable is how long an admitted check may be repeated, in microseconds.
	repeatable = 10 * second
	// minute is the default TTL of a reservation or slot, in milliseconds.
	minute = 60_000
)

// New returns a model that decides by a limits file. The file is assumed to be valid: New
// fails only if it cannot be parsed.
func New(file []byte) (*Model, error) {
	m := &Model{buckets: map[string]*entry{}, records: map[recordID]*record{}}
	if err := m.SetLimits(file); err != nil {
		return nil, err
	}
	return m, nil
}

// SetLimits replaces the limits file. Buckets of the same id, by and algorithm carry
// over.
//
// Not documented: a limit that is removed and comes back, or whose algorithm is changed
// and changed back, has its old bucket again.
func (m *Model) SetLimits(file []byte) error {
	l, err := readLimits(file)
	if err != nil {
		return fmt.Errorf("read limits: %w", err)
	}
	m.limits = l
	return nil
}

// Check decides a request and takes its cost. An admitted check with an ID may be
// repeated for ten seconds.
func (m *Model) Check(now int64, r Request) Decision {
	return m.decide(now, r, check, repeatable)
}

// Peek returns the decision that Check would make, and changes nothing.
func (m *Model) Peek(now int64, r Request) Decision {
	r.ID = ""
	return m.decide(now, r, peek, 0)
}

// Reserve decides a request and takes its cost as an estimate, to be settled by Commit or
// Cancel within the TTL.
func (m *Model) Reserve(now int64, r Request, ttlMS int64) Decision {
	return m.decide(now, r, reserve, ttl(ttlMS))
}

// Acquire takes a slot of each limit of concurrency that applies to the request, and one
// unit of every other limit.
func (m *Model) Acquire(now int64, r Request, ttlMS int64) Decision {
	r.Cost = 1
	return m.decide(now, r, acquire, ttl(ttlMS))
}

// ttl returns a TTL in microseconds.
func ttl(ms int64) int64 {
	if ms == 0 {
		ms = minute
	}
	return ms * millisecond
}

// Reset removes the buckets of a tenant's limit, or of all its limits when limitID is
// empty. An empty tenant means a shared limit.
//
// Not documented: the records of ids outlive it, and so do reservations. The slots that
// were held are free, and nothing is held under their ids.
func (m *Model) Reset(tenant, limitID string) {
	for key, e := range m.buckets {
		if e.tenant == tenant && (limitID == "" || e.limitID == limitID) {
			delete(m.buckets, key)
		}
	}
}
