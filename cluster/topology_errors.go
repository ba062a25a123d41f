package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// contactTimeout bounds the examination of an address that did not answer.
const contactTimeout = 2 * time.Second

// topologyError is the reason why the topology could not be fetched from a node.
type topologyError struct {
	addr string
	err  error
}

func (e topologyError) Error() string { return e.addr + ": " + e.why() }

// why returns the reason without the address.
func (e topologyError) why() string { return strings.TrimPrefix(Explain(e.err), e.addr+": ") }

func (e topologyError) Unwrap() error { return e.err }

// topologyErrors are the reasons why it could not be fetched from any node.
type topologyErrors []topologyError

// Error returns each reason once, behind the addresses that have it.
func (e topologyErrors) Error() string {
	addrs := map[string]string{}
	var reasons []string
	for _, err := range e {
		why := err.why()
		if addrs[why] == "" {
			reasons = append(reasons, why)
			addrs[why] = err.addr
		} else {
			addrs[why] += ", " + err.addr
		}
	}
	for i, why := range reasons {
		reasons[i] = addrs[why] + ": " + why
	}
	return strings.Join(reasons, "; ")
}

func (e topologyErrors) Unwrap() []error {
	all := make([]error, len(e))
	for i, err := range e {
		all[i] = err
	}
	return all
}

// configError is a reason why a node cannot be used until an operator changes the node or
// its address.
type configError string

func (m configError) Error() string { return string(m) }

// isConfigError reports whether only an operator can fix the cause of err. A node that is
// down, hangs or has no name at present may recover without help.
func isConfigError(err error) bool {
	var m configError
	return errors.As(err, &m) || explainTLS(err) != "" || errors.Is(err, ErrNotMaster) || errors.Is(err, errSecret) || kindOf(err) == KindAuth
}

// startWithout handles err, for which a store cannot be opened. It returns an empty
// topology if the store may recover and StartWithout is set. Otherwise it returns an error
// with the problem at each address.
func (s *Store) startWithout(ctx context.Context, err error) (*topology, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, err
	}
	var all topologyErrors
	if errors.As(err, &all) {
		err = s.examineAddresses(ctx)
	}
	failingOver := s.opts.Sentinel != "" && errors.Is(err, ErrNotMaster) // until the Sentinels know
	if !s.opts.StartWithout || isConfigError(err) && !failingOver {
		return nil, err
	}
	s.topErr.Store(&err)
	return &topology{nodes: map[string]*node{}}, nil
}

// examineAddresses returns the problem at each address, as package doctor reports it.
func (s *Store) examineAddresses(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*contactTimeout)
	defer cancel()
	all := make(topologyErrors, len(s.opts.Addrs))
	var wg sync.WaitGroup
	for i, addr := range s.opts.Addrs {
		wg.Go(func() { all[i] = topologyError{addr, s.examineAddress(ctx, addr)} })
	}
	wg.Wait()
	return all
}

// examineAddress returns the problem at an address.
func (s *Store) examineAddress(ctx context.Context, addr string) error {
	c, err := s.opts.contactMaster(ctx, addr, contactTimeout)
	if err != nil {
		return err
	}
	t, err := s.fetchFrom(ctx, addr, c, nil)
	if err != nil {
		return err
	}
	t.abandon(nil)
	return errAnswersNow
}

// errAnswersNow is the problem at an address whose node has recovered meanwhile.
var errAnswersNow = errors.New("it did not answer, and does now")

// NoMaster returns why no master of the store is known, or nil if one is.
func (s *Store) NoMaster() error {
	if !s.isEmpty() {
		return nil
	}
	return fmt.Errorf("%w; the backstop decides", s.unreached())
}

// unreached returns why no master of the store is known, while none is.
func (s *Store) unreached() error {
	err := errors.New("it has not been reached")
	if last := s.topErr.Load(); last != nil {
		err = *last
	}
	state := "no master of the store is known"
	if errors.Is(err, errNoSecret) {
		state = "the store is not in use yet"
	}
	return noOwnerError(state + ": " + strings.TrimPrefix(err.Error(), "fetch topology: "))
}

// isEmpty reports whether no master of the store is known.
func (s *Store) isEmpty() bool { return len(s.top.Load().nodes) == 0 }

// pauseOfReloads returns the least time to the next reload. While no master is known, every
// call requests a reload: in that case the pause has a random part, so that a fleet that
// started together does not dial a recovering store all at once.
func (s *Store) pauseOfReloads() time.Duration {
	if s.isEmpty() {
		return openReload + rand.N(openReload/2)
	}
	return reloadPause
}
