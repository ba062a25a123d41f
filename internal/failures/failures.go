// Package failures limits how often clients may fail to prove a secret. Its memory is bounded.
package failures

import (
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// Most is how many failures a client may have at once, and again in each Period.
	Most = 20
	// Period is the time of Most failures.
	Period = time.Minute
	// maxClients bounds the clients with failures that are kept, some 2 MB.
	maxClients = 10_000
	// prefixBits is the part of an IPv6 address that identifies a network: one client has
	// all addresses in it.
	prefixBits = 64
)

// rate is the limit of the failures of a client.
var rate = bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: Period.Microseconds() / Most, Capacity: Most}

// Limit limits the failures of clients, which K identifies. It is safe for concurrent use.
type Limit[K comparable] struct {
	mu      sync.Mutex // guards buckets and their content
	buckets *lru.Cache[K, *bucket.State]
}

// New returns a Limit without failures.
func New[K comparable]() *Limit[K] {
	buckets, err := lru.New[K, *bucket.State](maxClients)
	if err != nil {
		panic(err) // lru.New fails only for a size that is not positive
	}
	return &Limit[K]{buckets: buckets}
}

// Exceeded reports whether the client has failed too often.
func (l *Limit[K]) Exceeded(client K, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.buckets.Get(client)
	if !ok {
		return false
	}
	state := *s
	v, _, _ := bucket.Decide(&rate, nil, &state, now.UnixMicro(), 1)
	return !v.Allowed
}

// Add counts a failure.
func (l *Limit[K]) Add(client K, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.buckets.Get(client)
	if !ok {
		s = new(bucket.State)
		l.buckets.Add(client, s)
	}
	_, _, _ = bucket.Decide(&rate, nil, s, now.UnixMicro(), 1)
}

// Network returns the address that identifies a client, of the address of its connection.
func Network(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(prefixBits); err == nil {
			return p.Addr()
		}
	}
	return addr
}
