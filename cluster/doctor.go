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
	// inspectTimeout is the default of DialTimeout and IOTimeout in an inspection. It is
	// long because the inspection measures slow stores instead of giving up on them.
	inspectTimeout = 2 * time.Second
	// removeTimeout bounds the removal of the probes' keys after ctx has ended.
	removeTimeout = time.Second
)

// InspectOptions configure an inspection.
type InspectOptions struct {
	// Options are those of the Store to inspect. DialTimeout and IOTimeout default to 2 s.
	Options
	// DecisionTimeout is the time limit of a decision. Round trips are compared with it.
	DecisionTimeout time.Duration
}

// Inspect finds out what a store supports, and which mode a Store would use. It makes the
// probes that a Store makes when it connects, and a bounded number of decisions on keys of
// its own, lg:probe:*, which it removes and which expire within seconds in any case. It
// needs neither CONFIG nor DEBUG.
//
// A problem of the store is a finding, not an error; so is a check that was not finished
// when ctx ended. Inspect returns an error only for options that no Store can be opened
// with.
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

// inspection is an inspection in progress.
type inspection struct {
	opts   InspectOptions
	store  *Store // fetches topologies and dials; it never runs
	top    *topology
	first  *AddressReport // the address that top was fetched from
	report *Report
}

// examineAll examines every master: first its state and rights, all masters concurrently,
// then its speed, one master after the other.
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

// share returns the deadline of the first of n masters, so that each gets an equal part of
// the remaining time.
func share(ctx context.Context, n int) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(time.Duration(n) * inspectTimeout)
	}
	return time.Now().Add(time.Until(end) / time.Duration(n+1))
}

// nodeInspections returns an inspection of each master, in the order of their slots.
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

// tagAttempts bounds the search for keys of a master: it is enough for a master with a
// single slot.
const tagAttempts = 16 * limit.NumHashSlots

// probeTags returns up to batchSize key prefixes in slots for which owned is true. Each is
// a name with a hash tag of its own.
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
