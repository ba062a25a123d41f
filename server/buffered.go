package server

import (
	"cmp"
	"slices"
	"sync"
)

// relief is the part of Options.MaxBuffered that an eviction frees beyond what it must:
// the search for the largest accounts then is a rare one.
const relief = 8

// ledger bounds the memory that clients make their connections hold: replies that they
// do not read, long commands that they do not finish, and what sessions keep for them.
type ledger struct {
	most int64

	mu    sync.Mutex // guards the rest, and the fields of accounts
	total int64
	open  map[*account]struct{} // those that hold something
}

// account is what one connection holds.
type account struct {
	held int64
	// evict ends the connection. Any goroutine may call it.
	evict func()
}

// set records what a connection holds. Where all together hold too much, those that
// hold most are evicted, and do not count any more.
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

// largest removes the largest accounts until there is room.
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
