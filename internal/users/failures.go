package users

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// maxFailures of an address are checked at once, and as many again each failurePeriod.
	maxFailures   = 20
	failurePeriod = time.Minute
	// maxAddresses bounds the addresses with failures that are kept, some 2 MB.
	maxAddresses = 10_000
	// prefixBits is the part of an IPv6 address that identifies a network: one client has
	// all addresses in it.
	prefixBits = 64
)

// failureLimit is the limit of failures of an address.
var failureLimit = bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: failurePeriod.Microseconds() / maxFailures, Capacity: maxFailures}

// failures limits the failures of addresses. It is safe for concurrent use.
type failures struct {
	mu      sync.Mutex // guards buckets and their content
	buckets *lru.Cache[netip.Addr, *bucket.State]
}

func newFailures() *failures {
	buckets, err := lru.New[netip.Addr, *bucket.State](maxAddresses)
	if err != nil {
		panic(err) // lru.New fails only for a size that is not positive
	}
	return &failures{buckets: buckets}
}

// network returns the address under which failures are counted.
func network(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(prefixBits); err == nil {
			return p.Addr()
		}
	}
	return addr
}

// exceeded reports whether the address has failed too often.
func (f *failures) exceeded(addr netip.Addr, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.buckets.Get(network(addr))
	if !ok {
		return false
	}
	state := *s
	v, _, _ := bucket.Decide(&failureLimit, nil, &state, now.UnixMicro(), 1)
	return !v.Allowed
}

// add counts a failure.
func (f *failures) add(addr netip.Addr, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := network(addr)
	s, ok := f.buckets.Get(key)
	if !ok {
		s = new(bucket.State)
		f.buckets.Add(key, s)
	}
	_, _, _ = bucket.Decide(&failureLimit, nil, s, now.UnixMicro(), 1)
}
