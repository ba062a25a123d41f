package doctor

import (
	"context"
	"slices"
	"sync"

	"github.com/limitgate/limitgate/cluster"
)

// contactAll contacts every address concurrently. It fetches the layout of the store from
// those that answer, as a Store does from the first of them.
func (in *inspection) contactAll(ctx context.Context) {
	found := make([]AddressReport, len(in.opts.Addrs))
	in.report.Addresses = found
	contacts := make([]cluster.Contact, len(found))
	var wg sync.WaitGroup
	for i, addr := range in.opts.Addrs {
		wg.Go(func() {
			c, err := in.prober.Contact(ctx, addr)
			found[i], contacts[i] = AddressReport{Addr: addr, Role: c.Role, Master: c.Master}, c
			if err != nil {
				found[i].Error, found[i].away = cluster.Explain(err), cluster.IsAway(err) && in.opts.Sentinel == ""
			}
		})
	}
	wg.Wait()
	for i := range found {
		if found[i].Error == "" {
			if err := in.readLayout(ctx, &found[i], contacts[i]); err != nil {
				found[i].Error, found[i].away = cluster.Explain(err), cluster.IsAway(err) && in.opts.Sentinel == ""
			}
		}
	}
}

// OtherStores returns those addresses of a store that lead to another one than the first that answers: a
// Store uses that one, and a proxy that starts while it is away would use the other.
func OtherStores(ctx context.Context, store cluster.Options) ([]string, error) {
	prober, err := cluster.NewProber(store)
	if err != nil {
		return nil, err
	}
	in := &inspection{opts: store, prober: prober, report: &Report{}}
	in.contactAll(ctx)
	var others []string
	for _, a := range in.report.Addresses {
		if a.otherStore {
			others = append(others, a.Addr)
		}
	}
	return others, nil
}

// readLayout fetches the layout of the store from a node that answers.
func (in *inspection) readLayout(ctx context.Context, a *AddressReport, c cluster.Contact) error {
	l, err := in.prober.Layout(ctx, a.Addr, c)
	if err != nil {
		return err
	}
	if !l.Cluster {
		if a.run, err = in.runID(ctx, l.Masters[0]); err != nil {
			return err
		}
	}
	if in.layout == nil {
		in.layout, in.first = l, a
		return nil
	}
	shared := slices.ContainsFunc(l.Masters, func(addr string) bool { return slices.Contains(in.layout.Masters, addr) })
	a.otherStore = a.run != in.first.run || l.Cluster && !shared
	return nil
}

// runID returns the run id of a node, which differs between nodes with the same address in
// several networks.
func (in *inspection) runID(ctx context.Context, addr string) (string, error) {
	client := in.prober.Client(addr)
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx, "server").Result()
	return infoField(info, "run_id"), err
}
