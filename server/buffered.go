package server

import (
	"cmp"
	"slices"
	"sync"
)

// relief is the fraction (1/relief) of Options.MaxBuffered that an eviction frees beyond
// the excess, so that the search for the largest accounts is rare.
const relief = 8

// ledger bounds the memory that clients make their connections hold: unread replies,
// incomplete long commands, and the state that sessions keep for them.
type ledger struct {
	most int64

	mu    sync.Mutex // guards the fields below and those of accounts
	total int64
	open  map[*account]struct{} // accounts with a non-zero amount
}

// account records the memory that one connection holds.
type account struct {
	held int64
	// evict closes the connection. It is safe for concurrent use.
	evict func()
}

// set records the memory that a connection holds. If the sum of all accounts exceeds the
// bound, the largest are evicted and no longer count.
func (l *ledger) set(a *account, held int64) {
	for _, victim := range l.record(a, held) {
		victim.evict()
	}
}

func (l *ledger) record(a *account, held int64) (victims []*account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total += held - a.held
	a.held = held
	if held == 0 {
		delete(l.open, a)
		return nil
	}
	l.open[a] = struct{}{}
	if l.total <= l.most {
		return nil
	}
	return l.largest()
}

// largest removes and returns the largest accounts until the rest fits the bound.
func (l *ledger) largest() []*account {
	all := make([]*account, 0, len(l.open))
	for a := range l.open {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *account) int { return cmp.Compare(b.held, a.held) })
	for i, a := range all {
		if l.total <= l.most-l.most/relief {
			return all[:i]
		}
		l.total -= a.held
		a.held = 0
		delete(l.open, a)
	}
	return all
}
