package instances

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// resolver is Go's own, which asks again over TCP where an answer was cut short.
// It is strict: where the servers fail to tell the addresses of one kind, the half
// that is left must not pass for the whole.
var resolver = &net.Resolver{PreferGo: true, StrictErrors: true}

// DNS returns the source of the number of different addresses that a name has, A
// and AAAA, as that of a headless service. No address is an error.
func DNS(name string) Source { return dns{resolver, name, countAddrs} }

// SRV returns the source of the number of SRV records that a name has. None is an
// error.
func SRV(name string) Source { return dns{resolver, name, countRecords} }

type dns struct {
	resolver *net.Resolver
	name     string
	count    func(ctx context.Context, r *net.Resolver, name string) (int, error)
}

// Run implements Source.
func (d dns) Run(ctx context.Context, tell func(int, error)) { poll(ctx, dnsInterval, d.ask, tell) }

func (d dns) ask(ctx context.Context) (int, error) { return d.count(ctx, d.resolver, d.name) }

func countAddrs(ctx context.Context, r *net.Resolver, name string) (int, error) {
	all, err := r.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return 0, fmt.Errorf("look up addresses: %w", err)
	}
	different := map[netip.Addr]bool{}
	for _, a := range all {
		different[a.Unmap()] = true
	}
	return len(different), nil
}

func countRecords(ctx context.Context, r *net.Resolver, name string) (int, error) {
	_, all, err := r.LookupSRV(ctx, "", "", name)
	if err != nil {
		return 0, fmt.Errorf("look up SRV records: %w", err)
	}
	return len(all), nil
}
