package cluster

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// inspectTimeout is the default of DialTimeout and IOTimeout for an
	// inspection, which would rather say how slow a store is than give up.
	inspectTimeout = 2 * time.Second
	// removeTimeout bounds removing the probes' keys once time is up.
	removeTimeout = time.Second
)

// InspectOptions configure an inspection.
type InspectOptions struct {
	// Options are those of the Store that would be opened. DialTimeout and
	// IOTimeout are 2 s unless given.
	Options
	// DecisionTimeout is how long a decision may take, against which round trips
	// are judged.
	DecisionTimeout time.Duration
}

// Inspect finds out what a store can do, and which mode a Store would use, by
// the probes that a Store makes when it connects and by a bounded number of
// decisions on keys of its own, lg:probe:*, that it removes and that expire
// within seconds in any case. Nothing of it needs CONFIG or DEBUG.
//
// What is wrong with the store is a finding and no error; what could not be
// examined before ctx ended is one too. An error is returned for options that
// no Store could be opened with.
func Inspect(ctx context.Context, opts InspectOptions) (*Report, error) {
	if opts.DialTimeout <= 0 {
		opts.DialTimeout = inspectTimeout
	}
	if opts.IOTimeout <= 0 {
		opts.IOTimeout = inspectTimeout
	}
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	in := &inspection{
		opts:   opts,
		store:  &Store{opts: opts.Options, script: newDecideScript(writeFormat)},
		report: &Report{Masters: []MasterReport{}, Findings: []Finding{}},
	}
	in.contactAll(ctx)
	if in.top != nil {
		in.examineAll(ctx)
	}
	in.check(ctx)
	return in.report, nil
}

// inspection is an inspection under way.
type inspection struct {
	opts   InspectOptions
	store  *Store // knows how to learn a topology and to dial; it never runs
	top    *topology
	first  *AddressReport // from which top was learnt
	report *Report
}

// examineAll examines every master: first what each is and can do, all at the
// same time, then how fast they are, one after the other.
func (in *inspection) examineAll(ctx context.Context) {
	in.report.Kind = "redis"
	if in.top.cluster {
		in.report.Kind = "cluster"
	}
	subjects := in.nodeInspections()
	var wg sync.WaitGroup
	for _, s := range subjects {
		wg.Go(func() { s.examine(ctx) })
	}
	wg.Wait()
	for i, s := range subjects {
		s.measure(ctx, share(ctx, len(subjects)-i))
	}
	for _, s := range subjects {
		wg.Go(func() { s.cleanUp(ctx) })
	}
	wg.Wait()
	modes := map[Mode]int{}
	for _, s := range subjects {
		m := s.report
		if modes[m.Mode]++; m.Mode != "" && (in.report.Mode == "" || modes[m.Mode] > modes[in.report.Mode]) {
			in.report.Mode = m.Mode
		}
		in.report.Masters = append(in.report.Masters, *m)
	}
}

// share returns until when the first of n may go on, so that all have their
// part of the time that is left.
func share(ctx context.Context, n int) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(time.Duration(n) * inspectTimeout)
	}
	return time.Now().Add(time.Until(end) / time.Duration(n+1))
}

// nodeInspections returns the masters, in the order of their slots.
func (in *inspection) nodeInspections() []*nodeInspection {
	first := map[*node]int{}
	ranges := map[*node][]string{}
	for slot := 0; slot < limit.NumHashSlots; {
		n, begin := in.top.slots[slot], slot
		for slot < limit.NumHashSlots && in.top.slots[slot] == n {
			slot++
		}
		if _, known := first[n]; !known {
			first[n] = begin
		}
		text := strconv.Itoa(begin)
		if slot-1 > begin {
			text += "-" + strconv.Itoa(slot-1)
		}
		ranges[n] = append(ranges[n], text)
	}
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	var out []*nodeInspection
	for _, n := range slices.SortedFunc(maps.Values(in.top.nodes), func(a, b *node) int { return first[a] - first[b] }) {
		s := &nodeInspection{
			node: n, dialer: in.store.newDialer(n.addr, in.top.cluster),
			tags:   probeTags(run, func(slot uint16) bool { return in.top.owner(slot) == n }),
			report: &MasterReport{Addr: n.addr, Replicas: []string{}},
		}
		if in.top.cluster {
			s.report.Slots = strings.Join(ranges[n], " ")
		}
		out = append(out, s)
	}
	return out
}

// tagAttempts bounds the search for keys of a master: one with a single slot is
// found.
const tagAttempts = 16 * limit.NumHashSlots

// probeTags returns the beginnings of up to batchSize keys in slots that are
// owned, each a name with a tag of its own.
func probeTags(run string, owned func(uint16) bool) []string {
	var tags []string
	for i := range tagAttempts {
		tag := "lg:probe:{" + run + "." + strconv.Itoa(i) + "}"
		if owned(limit.HashSlot([]byte(tag))) {
			tags = append(tags, tag)
		}
		if len(tags) == batchSize {
			break
		}
	}
	return tags
}
