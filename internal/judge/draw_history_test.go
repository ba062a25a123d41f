package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/limitgate/limitgate/limit"
)

// drawn is a history with the files that it was made of, and the answers of the memory
// store, asked plainly.
type drawn struct {
	history
	specs   []*file
	answers []answer
}

// historyDraw draws a history while the memory store answers it: what is asked next
// depends on what was answered.
type historyDraw struct {
	r      *rand.Rand
	files  *fileDraw
	out    drawn
	engine *limiterEngine
	sets   []*limit.Set
	inUse  int // file

	// What this history draws from.
	tenants, ops, ips, dims []string
	ids                     bool
	holds                   bool
	wide                    bool // costs are large now and then
	asked                   []operation
	told                    []told
	held                    []operation
}

// told is a denial and when its request fits.
type told struct {
	o  operation
	at int64
}

// some returns one or more of several things.
func some[T any](r *rand.Rand, of []T, most int) []T {
	out := slices.Clone(of)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:1+r.IntN(min(most, len(out)))]
}

// drawHistory draws a history of about so many decisions.
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
	d.out.start = 2_208_988_800e6 + r.Int64N(1e15) // 2040 to 2071: the real clock stays behind
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
		if d.told = append(d.told, told{o, d.engine.now + a.retry*1000}); len(d.told) > 4 {
			d.told = d.told[1:]
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

// next does something, and returns how many decisions it took.
func (d *historyDraw) next() (decisions int) {
	before := len(d.out.steps)
	switch n := d.r.IntN(40); {
	case n < 12:
		d.pass()
	case n < 15 && len(d.told) > 0:
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

// pipeline asks for a few decisions at once, often the same ones.
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

// request draws a request, or takes one that was asked before.
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
		return min(limit.MaxCost, max(1, d.limit().Params.Capacity-1+d.r.Int64N(3)))
	}
}

// limit returns one of the limits in use that count in time, or a made up one where there is
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
	return &limit.Limit{Params: limit.Params{Capacity: 10, Period: 1e6, Count: 1}}
}

// hold makes a request one that is held.
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

// settle settles what is held, or something that is not.
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
			o.units = limit.MaxCost - d.r.Int64N(2)
		}
	}
	d.do(o)
}

// reset forgets the buckets of a tenant, or of a limit.
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

// holdToWait asks again just before a denied request fits, and when it does.
func (d *historyDraw) holdToWait() {
	i := d.r.IntN(len(d.told))
	t := d.told[i]
	d.told = slices.Delete(d.told, i, i+1)
	ahead := t.at - d.engine.now
	if ahead <= 0 || ahead > 5*limit.MaxPeriod {
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

// pass lets time pass.
func (d *historyDraw) pass() {
	l := d.limit()
	period, each := l.Params.Period, l.Params.Period
	if l.Params.Algorithm == limit.AlgorithmTokenBucket {
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
