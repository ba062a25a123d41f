package instances

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// resolver is Go's own, which retries over TCP if an answer is truncated. It is strict:
// if the servers fail for the addresses of one kind, the other half must not count as the
// whole.
var resolver = &net.Resolver{PreferGo: true, StrictErrors: true}

// DNS returns a source that counts the different addresses of a name, A and AAAA, such as
// that of a headless service. No address is an error.
func DNS(name string) Source { return dns{resolver, name, countAddrs} }

// SRV returns a source that counts the SRV records of a name. No record is an error.
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
