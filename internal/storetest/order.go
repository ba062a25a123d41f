package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// order searches for an order in which deciding the checks of one hash slot one by one
// gives every answer. Checks of a connection that share a bucket keep their order in it.
//
// Time stands still in it. Waits can therefore be off by the duration of the history, and
// by no more: the instant at which they end does not move.
type order struct {
	checks []answer
	before [][]int // by check, the checks that must come first
	now    int64
	slack  int64 // ms

	twin  Twin
	done  []byte // by check, '1' once it is placed
	place []int  // the placed checks, in order
	best  []int  // the longest place so far
	dead  map[string]bool
}

// newOrder prepares the search. Now, in microseconds, is the start of the history, and
// slack its duration.
func newOrder(checks []answer, now, slack int64) *order {
	o := &order{
		checks: checks, now: now, slack: slack, twin: Twin{}, dead: map[string]bool{},
		before: make([][]int, len(checks)), done: []byte(strings.Repeat("0", len(checks))),
	}
	for i := range checks {
		for j := range i {
			if checks[i].conn == checks[j].conn && shareBucket(checks[i].items, checks[j].items) {
				o.before[i] = append(o.before[i], j)
			}
		}
	}
	return o
}

func shareBucket(a, b []limit.Item) bool {
	for i := range a {
		for j := range b {
			if string(a[i].Name) == string(b[j].Name) {
				return true
			}
		}
	}
	return false
}

// find reports whether there is an order.
func (o *order) find() bool {
	mark := len(o.place)
	o.placeIdle()
	if len(o.place) > len(o.best) {
		o.best = slices.Clone(o.place)
	}
	if len(o.place) == len(o.checks) {
		return true
	}
	// While time stands still, the buckets depend on the set of placed checks, and not on
	// their order.
	if key := string(o.done); !o.dead[key] {
		for i := range o.checks {
			if !o.ready(i) {
				continue
			}
			undo, _, ok := o.try(i)
			if ok {
				o.put(i)
				if o.find() {
					return true
				}
				o.take()
			}
			undo()
		}
		o.dead[key] = true
	}
	for len(o.place) > mark {
		o.take()
	}
	return false
}

// placeIdle places every check that fits and changes no bucket: placing it later has no
// advantage.
func (o *order) placeIdle() {
	for again := true; again; {
		again = false
		for i := range o.checks {
			if !o.ready(i) {
				continue
			}
			undo, changed, ok := o.try(i)
			if ok && !changed {
				o.put(i)
				again = true
			} else {
				undo()
			}
		}
	}
}

func (o *order) put(i int) {
	o.done[i] = '1'
	o.place = append(o.place, i)
}

func (o *order) take() {
	o.done[o.place[len(o.place)-1]] = '0'
	o.place = o.place[:len(o.place)-1]
}

func (o *order) ready(i int) bool {
	for _, j := range o.before[i] {
		if o.done[j] == '0' {
			return false
		}
	}
	return o.done[i] == '0'
}

// try decides a check. It reports whether the check gets its answer, and whether that
// changed a bucket, which undo reverts.
func (o *order) try(i int) (undo func(), changed, ok bool) {
	items := slices.Clone(o.checks[i].items)
	was := Twin{}
	for j := range items {
		was[string(items[j].Name)] = o.twin[string(items[j].Name)]
	}
	o.twin.Decide(items, o.now, true)
	for name, state := range was {
		changed = changed || o.twin[name].State != state.State
	}
	undo = func() {
		for name, state := range was {
			o.twin[name] = state
		}
	}
	for j := range items {
		if !agrees(&o.checks[i].items[j], &items[j].Verdict, o.slack) {
			return undo, changed, false
		}
	}
	return undo, changed, true
}

// agrees reports whether the verdict of an item is the verdict wanted. A cached denial
// holds while time stands still, but units may have been taken since: fewer are left, and
// the wait is longer. The item's other buckets have no verdict then.
func agrees(it *limit.Item, want *bucket.Verdict, slack int64) bool {
	switch it.Source {
	case limit.SourceNone:
		return true
	case limit.SourceCache:
		never := it.Wait == bucket.Never
		return !want.Allowed && want.Remaining <= it.Remaining && it.Remaining < it.Cost &&
			never == (want.Wait == bucket.Never) && (never || it.Wait > 0)
	default:
		return difference(&it.Verdict, want, slack) == ""
	}
}

// difference describes how a verdict differs from the one wanted, if its waits may be off
// by slack ms; it returns nothing if they agree.
func difference(got, want *bucket.Verdict, slack int64) string {
	switch {
	case got.Allowed != want.Allowed:
		return fmt.Sprintf("allowed is %v", got.Allowed)
	case got.Remaining != want.Remaining:
		return fmt.Sprintf("%d left, not %d", got.Remaining, want.Remaining)
	case (got.Wait == bucket.Never) != (want.Wait == bucket.Never), distance(got.Wait, want.Wait) > slack:
		return fmt.Sprintf("a wait of %d ms, not %d", got.Wait, want.Wait)
	case distance(got.Reset, want.Reset) > slack:
		return fmt.Sprintf("full in %d ms, not %d", got.Reset, want.Reset)
	case got.Window != want.Window:
		return fmt.Sprintf("charged to the window %d, not %d", got.Window, want.Window)
	default:
		return ""
	}
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// explain lists the checks in the longest order that was found, and then those that fit
// nowhere after it.
func (o *order) explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d checks can be put in an order:\n", len(o.best), len(o.checks))
	for _, i := range o.best {
		b.WriteString(o.checks[i].String())
	}
	b.WriteString("and then none of:\n")
	for i := range o.checks {
		if !slices.Contains(o.best, i) {
			b.WriteString(o.checks[i].String())
		}
	}
	return b.String()
}

// String formats a check and its answer on a line.
func (a *answer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  connection %d: cost %d", a.conn, a.req.Cost)
	for i := range a.items {
		it := &a.items[i]
		fmt.Fprintf(&b, "; %s of %s: allowed %v, %d left, wait %d", it.Limit.Describe(), it.Name, it.Allowed, it.Remaining, it.Wait)
	}
	b.WriteString("\n")
	return b.String()
}
