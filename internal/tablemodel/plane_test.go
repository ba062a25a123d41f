package tablemodel

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/table"
)

// leaseTime is how long the lock of a control plane that has died lasts.
const leaseTime = 10 * time.Second

// leases distributes the shards of the stream, and the digest, among control planes.
type leases struct {
	mu     sync.Mutex // guards shards and digest
	shards [shards]lease
	digest lease
}

// lease is the owner of a shard, and how far it was processed.
type lease struct {
	owner *plane
	until time.Time
	told  int
	made  int // the number of the table
}

// take takes or renews a lease. The caller holds mu.
func (l *lease) take(p *plane) bool {
	now := time.Now()
	if l.owner != nil && l.owner != p && now.Before(l.until) {
		return false
	}
	l.owner, l.until = p, now.Add(leaseTime)
	return true
}

// plane is a running control plane.
type plane struct {
	table  *model
	leases *leases
	stop   context.CancelFunc
	done   sync.WaitGroup

	next [shards]lease // the last result of Next; used only by Run
	only int           // the shard that it leaves to another one, -1 for none
}

func startPlane(m *model, l *leases, n *network, only int) *plane {
	ctx, stop := context.WithCancel(context.Background())
	p := &plane{table: m, leases: l, stop: stop, only: only}
	log := slog.New(slog.DiscardHandler)
	relay := controlplane.Relay{Stream: p, Handler: &controlplane.Handler{Publish: n, Items: m, Log: log}, Log: log}
	digests := controlplane.Digests{Table: m, Publish: n, HoldsLock: p.alone, Log: log}
	p.done.Go(func() { _ = relay.Run(ctx) })
	p.done.Go(func() { _ = digests.Run(ctx) })
	return p
}

// end ends the control plane, which releases its leases unless it is killed.
func (p *plane) end(kill bool) {
	p.stop()
	p.done.Wait()
	if kill {
		return
	}
	p.leases.mu.Lock()
	defer p.leases.mu.Unlock()
	for i := range p.leases.shards {
		if l := &p.leases.shards[i]; l.owner == p {
			l.owner = nil
		}
	}
	if p.leases.digest.owner == p {
		p.leases.digest.owner = nil
	}
}

func (p *plane) alone(context.Context) (bool, error) {
	p.leases.mu.Lock()
	defer p.leases.mu.Unlock()
	return p.leases.digest.take(p), nil
}

// Next returns the records of the shards that are this control plane's.
func (p *plane) Next(ctx context.Context) (all []table.Record, err error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(200 * time.Millisecond):
	}
	p.leases.mu.Lock()
	defer p.leases.mu.Unlock()
	for i := range p.leases.shards {
		l := &p.leases.shards[i]
		if p.next[i] = (lease{}); i == p.only || !l.take(p) {
			continue
		}
		records, made, failed := p.table.records(i, l.told, l.made)
		if err = errors.Join(err, failed); failed != nil {
			continue
		}
		told := l.told
		if made != l.made {
			told = 0
		}
		p.next[i] = lease{owner: p, told: told + len(records), made: made}
		all = append(all, records...)
	}
	if len(all) > 0 {
		err = nil
	}
	return all, err
}

// Done records that they were processed.
func (p *plane) Done(context.Context) error {
	p.leases.mu.Lock()
	defer p.leases.mu.Unlock()
	for i := range p.leases.shards {
		if l := &p.leases.shards[i]; l.owner == p && p.next[i].owner == p {
			l.told, l.made = p.next[i].told, p.next[i].made
		}
	}
	return nil
}
