package doctor

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/limit"
)

const (
	// inspectTimeout is the default of DialTimeout and IOTimeout in an inspection. It is
	// long because the inspection measures slow stores instead of giving up on them.
	inspectTimeout = 2 * time.Second
	// removeTimeout bounds the removal of the probes' keys after ctx has ended.
	removeTimeout = time.Second
)

// Options configure an inspection.
type Options struct {
	// Store has the options of the Store to inspect. DialTimeout and IOTimeout default to
	// 2 s.
	Store cluster.Options
	// DecisionTimeout is the time limit of a decision. Round trips are compared with it.
	DecisionTimeout time.Duration
	// MeasureCPU also measures the processor time that calls take on one master, in a load of
	// some two seconds.
	MeasureCPU bool
}

// Inspect finds out what a store supports, and which mode a Store would use. It makes the
// probes that a Store makes when it connects, and a bounded number of decisions on keys of
// its own, lg:probe:*, which it removes and which expire within seconds in any case. It
// needs neither CONFIG nor DEBUG.
//
// A problem of the store is a finding, not an error; so is a check that was not finished
// when ctx ended. Inspect returns an error only for options that no Store can be opened
// with.
func Inspect(ctx context.Context, opts Options) (*Report, error) {
	store := opts.Store
	if store.DialTimeout <= 0 {
		store.DialTimeout = inspectTimeout
	}
	if store.IOTimeout <= 0 {
		store.IOTimeout = inspectTimeout
	}
	prober, err := cluster.NewProber(store)
	if err != nil {
		return nil, err
	}
	in := &inspection{
		opts: store, decisionTimeout: opts.DecisionTimeout, measureCPU: opts.MeasureCPU, prober: prober,
		report: &Report{Masters: []MasterReport{}, Findings: []Finding{}},
	}
	in.contactAll(ctx)
	if in.layout != nil {
		in.examineAll(ctx)
	}
	in.check(ctx)
	return in.report, nil
}

// inspection is an inspection in progress.
type inspection struct {
	opts cluster.Options
	// decisionTimeout is the time limit of a decision.
	decisionTimeout time.Duration
	measureCPU      bool
	prober          *cluster.Prober
	layout          *cluster.Layout // nil until an address has answered
	first           *AddressReport  // the address that layout was fetched from
	report          *Report
}

// examineAll examines every master: first its state and rights, all masters concurrently,
// then its speed, one master after the other.
func (in *inspection) examineAll(ctx context.Context) {
	in.report.Kind = "redis"
	if in.layout.Cluster {
		in.report.Kind = "cluster"
	}
	masters := in.masterInspections()
	var wg sync.WaitGroup
	for _, m := range masters {
		wg.Go(func() { m.examine(ctx) })
	}
	wg.Wait()
	for i, m := range masters {
		m.measure(ctx, share(ctx, len(masters)-i))
		if i == 0 && in.measureCPU {
			var err error
			if m.report.CPU, err = m.measureCPU(ctx); err != nil {
				m.report.CPUError = cluster.Explain(err)
			}
		}
	}
	for _, m := range masters {
		wg.Go(func() { m.cleanUp(ctx) })
	}
	wg.Wait()
	modes := map[cluster.Mode]int{}
	for _, m := range masters {
		mode := m.report.Mode
		if modes[mode]++; mode != "" && (in.report.Mode == "" || modes[mode] > modes[in.report.Mode]) {
			in.report.Mode = mode
		}
		in.report.Masters = append(in.report.Masters, *m.report)
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

// masterInspections returns an inspection of each master, in the order of their slots.
func (in *inspection) masterInspections() []*masterInspection {
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	var out []*masterInspection
	for i, addr := range in.layout.Masters {
		m := &masterInspection{
			prober: in.prober, layout: in.layout, addr: addr, opts: in.opts, client: in.prober.Client(addr),
			tags:   probeTags(run, func(slot uint16) bool { return in.layout.Owners[slot] == i }),
			report: &MasterReport{Addr: addr, Replicas: []string{}},
		}
		if in.layout.Cluster {
			m.report.Slots = slotRanges(in.layout.Owners[:], i)
		}
		out = append(out, m)
	}
	return out
}

// slotRanges returns the hash slots of the master with an index, as 0-5460 7000.
func slotRanges(owners []int, master int) string {
	var ranges []string
	for slot := 0; slot < len(owners); slot++ {
		begin := slot
		for slot < len(owners) && owners[slot] == master {
			slot++
		}
		switch slot - begin {
		case 0:
		case 1:
			ranges = append(ranges, strconv.Itoa(begin))
		default:
			ranges = append(ranges, strconv.Itoa(begin)+"-"+strconv.Itoa(slot-1))
		}
	}
	return strings.Join(ranges, " ")
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
