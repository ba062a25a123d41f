package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

// Report is the effect of limits on the requests of a log.
type Report struct {
	Requests   int64 `json:"requests"`
	Admitted   int64 `json:"admitted"`
	Denied     int64 `json:"denied"`
	OutOfOrder int64 `json:"out_of_order"`
	Unparsed   int64 `json:"unparsed"`
	// Degraded were decided without the store, because it was unavailable or too slow.
	Degraded int64 `json:"degraded"`
	// Foreign were denied by limits that the file does not have: the proxy runs another
	// file.
	Foreign int64 `json:"foreign"`
	// addresses reports that buckets have the addresses of clients.
	addresses bool
	// charged are limits that count units which callers charge, beside others that count each request as one.
	charged []string
	// Warnings are the reasons why the figures may be misleading.
	Warnings []string      `json:"warnings,omitempty"`
	Limits   []LimitReport `json:"limits"`
	// Allowing are the ids of limits with action: allow, whose requests are not counted.
	Allowing []string `json:"allowing,omitempty"`
	// Concurrency are the ids of limits of concurrency, whose slots a log does not have.
	Concurrency []string `json:"concurrency,omitempty"`
	// TopDenied are the buckets that denied most; addresses are hashed.
	TopDenied []BucketReport `json:"top_denied"`
	// FirstDenial is the time of the first denial, on the clock of the log.
	FirstDenial *time.Time `json:"first_denial,omitempty"`
	// BusiestSecond is the second with the most requests.
	BusiestSecond  *time.Time `json:"busiest_second,omitempty"`
	BusiestCount   int64      `json:"busiest_second_requests"`
	From           *time.Time `json:"from,omitempty"`
	To             *time.Time `json:"to,omitempty"`
	UnparsedSample []string   `json:"unparsed_sample,omitempty"`
}

// LimitReport is the effect of one limit.
type LimitReport struct {
	ID string `json:"id"`
	// The limit applied to Requests requests. Of those, Admitted were admitted, and
	// Denied were denied with this limit as the binding one.
	Requests int64 `json:"requests"`
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	// WouldDeny counts the requests that a shadow limit would have denied; null behind a
	// proxy, whose replies do not report them.
	WouldDeny *int64 `json:"would_deny"`
	// Closest is the bucket that had the least left at any time; null behind a proxy, for requests that all lack a dimension, and for
	// limits that no request met.
	Closest *ClosestReport `json:"closest"`
	// Rates are the counts for the period of the limit's rate with which at most a part of the requests that
	// met it would have been denied, in fixed windows; null behind a proxy, for requests that all lack a dimension, and for limits that no
	// request met.
	Rates *RatesReport `json:"rates"`

	windows *windows
}

// RatesReport has the counts for a period that would have denied nothing, 0.1 % and 1 % of the
// requests.
type RatesReport struct {
	Nothing    int64 `json:"nothing"`
	Thousandth int64 `json:"thousandth"`
	Hundredth  int64 `json:"hundredth"`
}

// ClosestReport is the moment at which a limit was closest to denying, or denied.
type ClosestReport struct {
	Bucket string    `json:"bucket"`
	Left   int64     `json:"left"`
	Of     int64     `json:"of"` // the capacity of the limit
	At     time.Time `json:"at"`
}

// BucketReport counts the denials of one bucket.
type BucketReport struct {
	Bucket string `json:"bucket"`
	Denied int64  `json:"denied"`
}

const (
	// topShown is how many buckets a report lists.
	topShown = 10
	// topTracked bounds the buckets whose denials are counted. Beyond it the
	// ones denied least are dropped, half of them at a time.
	topTracked = 200_000
)

// tally adds up outcomes.
type tally struct {
	set    *limit.Set
	report Report
	limits []LimitReport
	denied map[string]int64
	// undeclared counts the requests with a value that the limits do not declare, by dimension.
	undeclared map[string]int64
	refusals   refusals
	charges    charges
	capped     int64           // requests that no limit denied, and the backstop's bound of all tenants together did
	plans      map[string]bool // of the tenants of requests
	seen       seen
	second     time.Time
	count      int64
}

func newTally(set *limit.Set, remote bool) *tally {
	t := &tally{set: set, denied: map[string]int64{}, undeclared: map[string]int64{}, refusals: refusals{}, charges: charges{ids: map[string]bool{}}, plans: map[string]bool{}}
	for _, id := range set.IDs {
		r := LimitReport{ID: id, WouldDeny: new(int64)}
		if remote && hasShadow(set, id) {
			r.WouldDeny = nil
		}
		t.limits = append(t.limits, r)
	}
	return t
}

func hasShadow(set *limit.Set, id string) bool {
	return slices.ContainsFunc(set.All(), func(l *limit.Limit) bool { return l.ID == id && l.Mode == limit.ModeShadow })
}

// counting returns the ids of limits that count requests, and of those of concurrency. A limit of another plan with the same id
// may have action: allow.
func counting(set *limit.Set) (requests, slots map[string]bool) {
	requests, slots = map[string]bool{}, map[string]bool{}
	for _, l := range set.All() {
		switch {
		case l.Action == limit.ActionAllow:
		case l.HoldsSlots():
			slots[l.ID] = true
		default:
			requests[l.ID] = true
		}
	}
	return requests, slots
}

// charges notes whether limits that a request met count units which callers charge, or each request as one.
type charges struct {
	fixed bool
	ids   map[string]bool // of limits without a cost of their own
}

// add notes a limit that a request met.
func (c *charges) add(l *limit.Limit) {
	if l.FixedCost > 0 {
		c.fixed = true
	} else if l.Action == limit.ActionLimit && !c.ids[l.ID] {
		c.ids[l.ID] = true
	}
}

// named returns the ids of limits without a cost of their own, if others have one, as in a file that tells requests from other units: of
// very many the first ones.
func (c *charges) named() []string {
	if !c.fixed {
		return nil
	}
	ids := slices.Sorted(maps.Keys(c.ids))
	if more := len(ids) - mostNamed; more > 0 {
		ids = append(ids[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return ids
}

// add counts one request.
func (t *tally) add(a *asked, o *outcome) {
	t.report.Requests++
	t.plans[t.set.Plan(a.req.Tenant)] = true
	t.seen.add(t.set, &a.req)
	for name := range t.set.Undeclared(&a.req) {
		t.undeclared[name]++
	}
	if t.report.From == nil {
		from := a.at
		t.report.From = &from
	}
	if o.allowed {
		t.report.Admitted++
	} else {
		t.report.Denied++
		if t.report.FirstDenial == nil {
			at := a.at
			t.report.FirstDenial = &at
		}
	}
	if o.degraded {
		t.report.Degraded++
	}
	switch {
	case o.allowed:
	case o.limitID == "":
		t.capped++
	case !slices.ContainsFunc(t.limits, func(l LimitReport) bool { return l.ID == o.limitID }):
		t.report.Foreign++
	}
	t.refusals.add(o)
	t.addSecond(a.at)
	for i := range o.applied {
		ap := &o.applied[i]
		l := &t.limits[ap.limit.Ordinal]
		l.Requests++
		t.charges.add(ap.limit)
		switch {
		case o.allowed:
			l.Admitted++
		case o.limitID == ap.limit.ID && ap.limit.Mode == limit.ModeEnforce:
			l.Denied++
			t.addDenied(ap)
		}
		if ap.left >= 0 {
			if l.windows == nil {
				l.windows = newWindows(time.Duration(ap.limit.Rate.Period) * time.Microsecond)
				l.windows.limit, l.windows.title, l.windows.of = ap.limit.Rate.Count, ap.limit.Describe(), ap.limit
			}
			l.windows.add(ap.bucket, a.at)
		}
		if ap.left >= 0 && (l.Closest == nil || closer(ap, l.Closest)) {
			l.Closest = &ClosestReport{ap.bucket, ap.left, ap.limit.Params.Capacity, a.at}
		}
		if ap.wouldDeny && l.WouldDeny != nil {
			*l.WouldDeny++
		}
	}
}

// closer reports whether a bucket has less left than another had, in proportion to its limit:
// tenants may override it.
func closer(ap *applied, c *ClosestReport) bool {
	return float64(ap.left)/float64(ap.limit.Params.Capacity) < float64(c.Left)/float64(c.Of)
}

func (t *tally) addSecond(at time.Time) {
	at = at.Truncate(time.Second)
	if !at.Equal(t.second) {
		t.second, t.count = at, 0
	}
	t.count++
	if t.count > t.report.BusiestCount {
		busiest := at
		t.report.BusiestSecond, t.report.BusiestCount = &busiest, t.count
	}
	if t.report.To == nil || !at.Equal(*t.report.To) {
		to := at
		t.report.To = &to
	}
}

func (t *tally) addDenied(ap *applied) {
	name := ap.bucket
	if name == "" {
		name = ap.limit.ID + " (" + ap.limit.Describe() + ")"
	}
	t.denied[name]++
	if len(t.denied) <= topTracked {
		return
	}
	for _, b := range t.top(len(t.denied))[topTracked/2:] {
		delete(t.denied, b.Bucket)
	}
}

func (t *tally) top(n int) []BucketReport {
	out := make([]BucketReport, 0, len(t.denied))
	for name, denied := range t.denied {
		out = append(out, BucketReport{name, denied})
	}
	slices.SortFunc(out, func(a, b BucketReport) int {
		return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Bucket, b.Bucket))
	})
	return out[:min(n, len(out))]
}

// setRates sets the rates, where a request met the limit.
func (l *LimitReport) setRates() {
	if l.windows == nil {
		return
	}
	l.windows.end()
	nothing, ok := l.windows.limitFor(0)
	if !ok {
		return
	}
	thousandth, _ := l.windows.limitFor(0.001)
	hundredth, _ := l.windows.limitFor(0.01)
	l.Rates = &RatesReport{nothing, thousandth, hundredth}
}

// finish returns the report.
func (t *tally) finish(s *source) *Report {
	r := &t.report
	r.TopDenied = t.top(topShown)
	r.Limits = make([]LimitReport, 0, len(t.limits))
	requests, slots := counting(t.set)
	for i := range t.limits {
		switch l := &t.limits[i]; {
		case requests[l.ID]:
			l.setRates()
			r.Limits = append(r.Limits, *l)
		case slots[l.ID]:
			r.Concurrency = append(r.Concurrency, l.ID)
		default:
			r.Allowing = append(r.Allowing, l.ID)
		}
	}
	r.charged = t.charges.named()
	r.OutOfOrder, r.Unparsed, r.UnparsedSample = s.outOfOrder, s.unparsed.total, s.unparsed.sample()
	if r.Degraded > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d were decided without the store, which was sick or slower than --decision-timeout: the counts are not exact", r.Degraded, r.Requests))
	}
	r.Warnings = append(r.Warnings, t.refusals.warnings(r.Requests)...)
	if t.capped > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d were denied by --backstop-total-rate, and by no limit", t.capped))
	}
	if r.Foreign > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d were denied by limits that are not in this file", r.Foreign))
	}
	r.Warnings = append(r.Warnings, t.seen.noTenant(t.set, &s.opts, &s.lacking)...)
	for _, name := range slices.Sorted(maps.Keys(t.undeclared)) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d requests have a value of %s that the limits file does not declare, which counts as a missing one", t.undeclared[name], r.Requests, name))
	}
	s.lacking.warnOfPaths(t.set, &s.opts)
	r.Warnings = append(r.Warnings, s.lacking.unmet(t.set, t.plans, &s.opts)...)
	r.Warnings = append(r.Warnings, t.seen.otherOps(t.set, t.plans, t.limits)...)
	return r
}

// Local replays a log in this process, on the log's own clock.
func Local(ctx context.Context, log io.Reader, set *limit.Set, opts Options) (*Report, error) {
	d, err := newLocal(set, opts)
	if err != nil {
		return nil, err
	}
	t := newTally(set, false)
	t.report.addresses = opts.ShowAddresses
	s, err := run(ctx, log, opts, d, t.add)
	if err != nil {
		return nil, err
	}
	return t.finish(s), nil
}

// Against replays a log through the proxy of client, which should run the limits of set.
// The client must have one connection, use RESP2 and never retry.
func Against(ctx context.Context, client *redis.Client, log io.Reader, set *limit.Set, opts Options) (*Report, error) {
	d, err := newRemote(client, set, opts)
	if err != nil {
		return nil, err
	}
	version, err := d.version(ctx)
	if err != nil {
		return nil, err
	}
	t := newTally(set, true)
	if version != set.Version {
		t.report.Warnings = append(t.report.Warnings, fmt.Sprintf("the proxy runs limits version %s, this file is %s: limits of the file that the proxy does not have decided nothing, whatever the table shows", version, set.Version))
	}
	begun := time.Now()
	s, err := run(ctx, log, opts, d, t.add)
	if err != nil {
		return nil, err
	}
	report := t.finish(s)
	report.warnOfPace(time.Since(begun))
	return report, nil
}

// warnOfPace warns if the requests were sent faster than in the log: buckets had less time to fill.
func (r *Report) warnOfPace(took time.Duration) {
	if r.From == nil || r.To == nil {
		return
	}
	if span := r.To.Sub(*r.From); took < span/2 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the requests of %s in the log were sent in %s, so that buckets had no such time to fill, and the proxy has counted what it admitted: --speed 1x keeps the pace of the log", span, max(took.Round(100*time.Millisecond), 100*time.Millisecond)))
	}
}
