package drill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/run"
)

// A Fault is an outage that can be made and ended. One goroutine at a time may use it.
type Fault interface {
	// Begin makes the outage, which ends by itself some time after atMost.
	Begin(ctx context.Context, atMost time.Duration) error
	// Recover ends it as operations would see it end.
	Recover(ctx context.Context) error
	// Restore ends what is left of it. It is called once behind Begin, however that ended.
	Restore(ctx context.Context) error
}

// The times of faults.
const (
	// pauseSlack is the time for which a pause lasts beyond the outage, should the drill be
	// killed: long enough that it never ends before the drill ends it.
	pauseSlack = 5 * time.Second
	// promotionTime bounds the promotion of a replica, and promotionPoll is the time between two
	// looks at its role.
	promotionTime = 4 * time.Second
	promotionPoll = 50 * time.Millisecond
)

// NewFault returns the outage of a drill that runs.
func NewFault(ctx context.Context, name string, s *Store) (Fault, error) {
	switch name {
	case failOpen.Name:
		return &pausing{store: s, masters: s.Masters()}, nil
	case failover.Name:
		return newPromotion(ctx, s)
	}
	return nil, fmt.Errorf("drill %s makes no outage", name)
}

// pausing keeps masters from deciding. CLIENT PAUSE WRITE holds scripts back, but not CLIENT
// UNPAUSE, so that it can end early.
type pausing struct {
	store   *Store
	masters []string
	paused  []string
}

// Begin pauses the masters.
func (p *pausing) Begin(ctx context.Context, atMost time.Duration) error {
	for _, addr := range p.masters {
		p.paused = append(p.paused, addr) // a pause whose reply is lost may be in force
		if err := p.store.client(addr).Do(ctx, "CLIENT", "PAUSE", (atMost + pauseSlack).Milliseconds(), "WRITE").Err(); err != nil {
			return fmt.Errorf("pause %s: %w", addr, err)
		}
	}
	return nil
}

// Recover ends the pauses.
func (p *pausing) Recover(ctx context.Context) error { return p.Restore(ctx) }

// Restore ends the pauses that are left.
func (p *pausing) Restore(ctx context.Context) error {
	var left []string
	var errs []error
	for _, addr := range p.paused {
		if err := p.store.client(addr).Do(ctx, "CLIENT", "UNPAUSE").Err(); err != nil {
			left = append(left, addr)
			errs = append(errs, fmt.Errorf("end pause of %s, which ends by itself within seconds: %w", addr, err))
		}
	}
	p.paused = left
	return errors.Join(errs...)
}

// promotion is the outage of the master of Tenant, until one of its replicas is promoted.
type promotion struct {
	pausing
	replica string
}

// newPromotion chooses a replica that has the data of its master.
func newPromotion(ctx context.Context, s *Store) (*promotion, error) {
	if !s.cluster {
		return nil, errors.New("failover needs a Redis Cluster, and this is a single Redis: practise fail-open on it")
	}
	o, err := s.owner(ctx, "{"+Tenant+"}")
	if err != nil {
		return nil, err
	}
	replicas, err := s.replicas(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, addr := range replicas {
		info, err := s.client(addr).Info(ctx, "replication").Result()
		if err == nil && strings.Contains(info, "master_link_status:up") {
			return &promotion{pausing{store: s, masters: []string{o.master}}, addr}, nil
		}
	}
	return nil, fmt.Errorf("the master %s has no replica with a link to it that is up, of %d", o.master, len(replicas))
}

// Recover promotes the replica.
func (p *promotion) Recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, promotionTime)
	defer cancel()
	if err := p.store.client(p.replica).Do(ctx, "CLUSTER", "FAILOVER", "FORCE").Err(); err != nil {
		return fmt.Errorf("promote %s: %w", p.replica, err)
	}
	for {
		role, err := p.store.role(ctx, p.replica)
		if err == nil && role == "master" {
			return p.Restore(ctx)
		}
		if !run.Sleep(ctx, promotionPoll) {
			return fmt.Errorf("promote %s: it is no master after %v", p.replica, promotionTime)
		}
	}
}
