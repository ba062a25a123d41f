package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// drawn is a history with its files, and the answers of the memory store with the plain
// way.
type drawn struct {
	history
	specs   []*file
	answers []answer
}

// historyDraw draws a history while the memory store answers it: the next operation
// depends on the answers before.
type historyDraw struct {
	r      *rand.Rand
	files  *fileDraw
	out    drawn
	engine *limiterEngine
	sets   []*limit.Set
	inUse  int // index of the file

	// The values from which this history draws.
	tenants, ops, ips, dims []string
	ids                     bool
	holds                   bool
	wide                    bool // some costs are large
	asked                   []operation
	denials                 []denial
	held                    []operation
}

// denial is a denied request and the time at which it fits.
type denial struct {
	o  operation
	at int64
}

// some returns one or more of several values, at most most.
func some[T any](r *rand.Rand, of []T, most int) []T {
	out := slices.Clone(of)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:1+r.IntN(min(most, len(out)))]
}

// drawHistory draws a history of about this number of decisions.
func drawHistory(r *rand.Rand, decisions int) (*drawn, error) {
	d := &historyDraw{r: r, files: newFileDraw(r), engine: memoryEngine(plain)}
	d.tenants, d.ops, d.ips, d.dims = d.files.names, some(r, ops, 3), some(r, ips, 3), some(r, dimNames, 3)
	d.ids, d.holds, d.wide = chance(r, 3), chance(r, 3), chance(r, 3)
	if err := d.addFile(d.files.file()); err != nil {
		return nil, err
	}
	for range r.IntN(3) {
		if err := d.addFile(d.files.change(d.out.specs[0])); err != nil {
			return nil, err
		}
	}
	d.out.start = 2_208_988_800e6 + r.Int64N(1e15) // 2040 to 2071: always after the real clock
	if err := d.engine.start(&d.out.history, d.sets[0]); err != nil {
		return nil, err
	}
	for n := 0; n < decisions; {
		n += d.next()
	}
	return &d.out, nil
}

func (d *historyDraw) addFile(f *file) error {
	set, err := compile(f.String())
	if err != nil {
		return fmt.Errorf("draw file: %w", err)
	}
	d.out.specs = append(d.out.specs, f)
	d.out.files = append(d.out.files, f.String())
	d.sets = append(d.sets, set)
	return nil
}

// do appends an operation and its answer.
func (d *historyDraw) do(o operation) *answer {
	d.out.steps = append(d.out.steps, o)
	d.out.answers = append(d.out.answers, answer{})
	a := &d.out.answers[len(d.out.answers)-1]
	if o.kind.pipelined() {
		d.engine.decide([]operation{o}, d.out.answers[len(d.out.answers)-1:])
	} else {
		d.engine.do(&o, a, d.sets)
	}
	if a.decided {
		d.remember(o, a)
	}
	return a
}

func (d *historyDraw) remember(o operation, a *answer) {
	o.joined = false
	if !a.allowed && a.retry > 0 {
		if d.denials = append(d.denials, denial{o, d.engine.now + a.retry*1000}); len(d.denials) > 4 {
			d.denials = d.denials[1:]
		}
	}
	if a.allowed && (o.kind == reserve || o.kind == acquire) {
		if d.held = append(d.held, o); len(d.held) > 6 {
			d.held = d.held[1:]
		}
	}
	if d.asked = append(d.asked, o); len(d.asked) > 12 {
		d.asked = d.asked[1:]
	}
}

// next appends operations, and returns the number of their decisions.
func (d *historyDraw) next() (decisions int) {
	before := len(d.out.steps)
	switch n := d.r.IntN(40); {
	case n < 12:
		d.pass()
	case n < 15 && len(d.denials) > 0:
		d.holdToWait()
	case n < 16 && len(d.sets) > 1:
		d.inUse = d.r.IntN(len(d.sets))
		d.do(operation{kind: reload, file: d.inUse})
	case n < 18:
		o := d.request(peek)
		o.id = ""
		d.do(o)
	case n < 19:
		o := d.request(refund)
		o.id = ""
		d.do(o)
	case n == 19 && chance(d.r, 4):
		d.reset()
	case n < 26 && d.holds:
		d.settle()
	default:
		d.pipeline()
	}
	for _, o := range d.out.steps[before:] {
		if o.kind.decides() {
			decisions++
		}
	}
	return decisions
}

// pipeline draws a pipeline of a few decisions, often equal ones.
func (d *historyDraw) pipeline() {
	n := 1
	switch d.r.IntN(4) {
	case 0:
		n = 1 + d.r.IntN(64)
	case 1, 2:
		n = 1 + d.r.IntN(8)
	}
	var o operation
	for i := range n {
		if i == 0 || !chance(d.r, 2) {
			o = d.request(check)
			if d.holds && chance(d.r, 4) {
				o = d.hold(o)
			}
		}
		o.joined = i > 0
		d.do(o)
	}
}

// request draws a request, or repeats an earlier one.
func (d *historyDraw) request(k kind) operation {
	if len(d.asked) > 0 && chance(d.r, 3) {
		o := one(d.r, d.asked)
		if k != check || o.kind == peek {
			o.kind, o.id, o.ttl = k, "", 0
		}
		return o
	}
	o := operation{kind: k, tenant: one(d.r, d.tenants), op: one(d.r, d.ops), ip: one(d.r, d.ips), cost: d.cost()}
	for _, name := range d.dims {
		if !chance(d.r, 3) {
			o.dims = append(o.dims, limit.Dim{Name: name, Value: one(d.r, dimValues[name])})
		}
	}
	if d.ids && chance(d.r, 3) {
		o.id = fmt.Sprintf("i%d", d.r.IntN(1000))
	}
	return o
}

func (d *historyDraw) cost() int64 {
	switch n := d.r.IntN(12); {
	case n < 7:
		return 1
	case n < 11 || !d.wide:
		return 1 + d.r.Int64N(5)
	default:
		return min(bucket.MaxCost, max(1, d.limit().Params.Capacity-1+d.r.Int64N(3)))
	}
}

// limit returns one of the limits in use with a rate, or an invented one if there is
// none.
func (d *historyDraw) limit() *limit.Limit {
	of := d.sets[d.inUse].Limits
	for range 4 {
		if len(of) == 0 {
			break
		}
		if l := one(d.r, of); l.Params.Period > 0 && l.Params.Capacity > 0 {
			return l
		}
	}
	return &limit.Limit{Params: bucket.Params{Capacity: 10, Period: 1e6, Count: 1}}
}

// hold turns a request into a reservation or a slot request.
func (d *historyDraw) hold(o operation) operation {
	if o.kind != check {
		return o
	}
	o.kind, o.id = reserve, fmt.Sprintf("h%d", d.r.IntN(1000))
	if chance(d.r, 2) {
		o.kind, o.cost = acquire, 1
	}
	o.ttl = one(d.r, []int64{60_000, 60_000, 1000, 10_000, 3_600_000, 1})
	return o
}

// settle settles a reservation or slots, or an unknown id.
func (d *historyDraw) settle() {
	if len(d.held) == 0 {
		d.do(d.hold(d.request(check)))
		return
	}
	h := one(d.r, d.held)
	o := operation{kind: one(d.r, []kind{commit, commit, cancel}), tenant: h.tenant, id: h.id}
	if h.kind == acquire {
		o.kind = one(d.r, []kind{release, release, renew})
	}
	switch {
	case o.kind == renew && chance(d.r, 2):
		o.ttl = one(d.r, []int64{1000, 60_000})
	case o.kind == commit:
		o.units = one(d.r, []int64{0, d.r.Int64N(h.cost + 1), h.cost, h.cost + d.r.Int64N(5)})
		if d.wide && chance(d.r, 8) {
			o.units = bucket.MaxCost - d.r.Int64N(2)
		}
	}
	d.do(o)
}

// reset resets the buckets of a tenant, or of a limit.
func (d *historyDraw) reset() {
	o := operation{kind: reset, tenant: one(d.r, d.tenants)}
	if l := d.limit(); l.ID != "" && chance(d.r, 2) {
		o.limitID = l.ID
		if d.sets[d.inUse].LimitByID(l.ID).SpansTenants() {
			o.tenant = ""
		}
	}
	d.do(o)
}

// holdToWait repeats a denied request just before it fits, and when it does.
func (d *historyDraw) holdToWait() {
	i := d.r.IntN(len(d.denials))
	t := d.denials[i]
	d.denials = slices.Delete(d.denials, i, i+1)
	ahead := t.at - d.engine.now
	if ahead <= 0 || ahead > 5*bucket.MaxPeriod {
		return
	}
	if ahead > 1000 {
		d.do(operation{kind: advance, by: ahead - 1000})
		ahead = 1000
		d.do(t.o)
	}
	d.do(operation{kind: advance, by: ahead})
	d.do(t.o)
}

// pass advances the time.
func (d *historyDraw) pass() {
	l := d.limit()
	period, each := l.Params.Period, l.Params.Period
	if l.Params.Algorithm == bucket.AlgorithmTokenBucket {
		each = l.Params.FullTime() / min(l.Params.Capacity, 1000)
	}
	by := int64(0)
	switch d.r.IntN(10) {
	case 0:
		by = 1
	case 1:
		by = 1000 * (1 + d.r.Int64N(3))
	case 2, 3:
		by = d.r.Int64N(2*period + 1)
	case 4, 5:
		by = d.r.Int64N(2*each + 1)
	case 6:
		by = period - d.engine.now%period + d.r.Int64N(3) - 1
	case 7:
		if b := l.Bounds(d.engine.now); b != nil {
			by = b[2] - d.engine.now + d.r.Int64N(3) - 1
		}
	case 8:
		by = d.r.Int64N(4e6)
	case 9:
		by = one(d.r, []int64{10e6, 10e6 - 1, 60e6, 3600e6, 86400e6, 31 * 86400e6})
	}
	if by > 0 && d.engine.now+by < 6_000_000_000e6 { // 2160
		d.do(operation{kind: advance, by: by})
	}
}
