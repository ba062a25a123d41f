package cluster

import (
	"cmp"
	"hash/maphash"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// maxBatch is the maximum number of calls in a batch: larger batches make a decision no
	// cheaper, and the first calls in them wait for the last.
	maxBatch = 256
	// tableSize is the size of the table that finds equal calls: a power of two, twice
	// maxBatch.
	tableSize = 2 * maxBatch
)

// batch is a batch of calls that is sent to a node in one pipeline. The calls of all
// callers are coalesced, one for each different call, and the coalesced calls put into runs: the
// coalesced calls of a run have the same limits and costs.
//
// Only the current owner of a batch may use it, see pipeline.
type batch struct {
	opts         batchOptions
	commands     []command
	runs         []callRun
	coalesced    []coalescedCall
	callers      []caller
	requests     []*nodeRequest   // dequeued
	table        [tableSize]int16 // index of a coalesced call plus one, by hash
	out          []byte           // the encoded commands
	body         []byte
	items        []limit.Item // of the coalesced calls: a caller may return and reuse its own items
	names        []byte
	states       []bucket.State
	verdicts     []bucket.Verdict
	leaseGranted []int64
	// leaseCallers are callers whose granted lease units wait for the other callers of
	// their coalesced call. heldVerdicts holds the verdicts of their own checks.
	leaseCallers []int
	heldVerdicts []bucket.Verdict
	// notify is called with each node request whose calls are all answered. late and returned are
	// called for callers that have left, see Options.Late and Options.Returned.
	notify   func(*nodeRequest)
	late     func(call []limit.Item, sent time.Time)
	returned func(names []string)
	// onFailure is called with each call that the replies leave undecided. failed counts them,
	// as far as they count against the node, and lastErr is the last of these errors.
	onFailure func(error, []limit.Item)
	failed    int
	lastErr   error
	inTime    int   // calls that were answered while their callers waited
	now       int64 // the store's time, from the reply being read
	// replayed reports whether the reply being read is a replayed answer.
	replayed bool
	sentAt   time.Time
	refs     int // senders and readers, see pipeline.release
	read     int // the replies that were read, that to SCRIPT LOAD included
	// missing are the commands that failed with NOSCRIPT. again are those that failed before
	// the batch was sent once more, after SCRIPT LOAD; resend holds the bytes that were sent.
	missing, again []int
	resend         []byte
	resends        int // number of resends
}

// batchOptions configure how calls are combined into commands.
type batchOptions struct {
	// acrossSlots allows calls of several hash slots in one command.
	acrossSlots bool
	// declared passes the keys of a command as KEYS.
	declared bool
	// separate disables the coalescing of equal calls.
	separate bool
}

// command is one script call.
type command struct {
	slot       uint16
	route      route  // the route of its calls
	once       []byte // the record key of its only call, or nil
	keep       time.Duration
	hold       limit.Hold  // of that record
	settlement *settlement // of its only call, or nil
	free       bool        // the settlement's script may use keys that it does not declare
	first      int         // its first run, or -1
	last       int
	start, end int // its bytes in batch.out
}

// callRun is a sequence of coalesced calls of a command that have the same op and shape.
type callRun struct {
	op          op
	shape       []limit.Item // the items of its first coalesced call, for limits and costs
	next        int          // the next run of the command, or -1
	first, last int          // its coalesced calls
	coalesced   int
	several     int  // coalesced calls that count more than one check
	repeats     bool // several of its calls may be equal
}

// coalescedCall is one call and all callers that make it.
type coalescedCall struct {
	items       []limit.Item
	hash        uint64
	place       position
	next        int   // the next coalesced call of the run, or -1
	first, last int   // its callers, in order of arrival
	n           int64 // number of checks: one for each caller, plus the wanted lease units
	answered    bool
}

// caller is one caller's call. The callers of a coalesced call are decided in their order.
type caller struct {
	request     *nodeRequest
	call        limit.Call
	tag         uint64 // hash of the tag of its buckets, which other calls may share
	place       position
	leaseWanted int64 // number of further checks that it would accept
	next        int   // the next caller of the coalesced call, or -1
}

// position is the place of a call in its batch: the command, the run in that command, and
// the coalesced call in that run.
type position struct{ command, run, coalesced int }

func (p position) before(q position) bool {
	return cmp.Or(cmp.Compare(p.command, q.command), cmp.Compare(p.run, q.run), cmp.Compare(p.coalesced, q.coalesced)) < 0
}

func newBatch() *batch {
	return &batch{notify: (*nodeRequest).notifyDone, late: func([]limit.Item, time.Time) {}, returned: func([]string) {}}
}

var hashSeed = maphash.MakeSeed()

// reset empties the batch.
func (b *batch) reset() {
	b.commands, b.runs, b.coalesced = b.commands[:0], b.runs[:0], b.coalesced[:0]
	b.missing, b.again, b.read, b.resends = nil, nil, 0, 0
	b.inTime, b.failed, b.lastErr = 0, 0, nil
	clear(b.callers) // releases the node requests
	clear(b.requests)
	b.callers, b.requests = b.callers[:0], b.requests[:0]
	b.table = [tableSize]int16{}
	b.out, b.items, b.names = b.out[:0], b.items[:0], b.names[:0]
}

// addRequest adds the calls of a node request to the batch and reports true. It reports
// false if the caller has left or sendBy has passed.
func (b *batch) addRequest(nr *nodeRequest, now time.Time) bool {
	nr.mu.Lock()
	defer nr.mu.Unlock()
	if nr.abandoned || now.After(nr.sendBy) {
		return false
	}
	nr.sent = true
	first := len(b.callers)
	for _, c := range nr.calls {
		b.addCall(nr, c, first)
	}
	return true
}

// addCall puts a call into a coalesced call. It preserves the order of a caller's calls that share a
// bucket: a call is never placed before an earlier call of its node request that has the
// same tag. The callers of that node request begin at first.
func (b *batch) addCall(nr *nodeRequest, c limit.Call, first int) {
	items := nr.items[c.First:c.Last]
	if nr.op == opPeek {
		c.RecordKey = nil // a peek grants nothing
	}
	m := caller{request: nr, call: c, next: -1, tag: maphash.Bytes(hashSeed, items[0].Name[:items[0].TagLen])}
	after := position{}
	for i := first; i < len(b.callers); i++ {
		if o := &b.callers[i]; o.tag == m.tag && after.before(o.place) {
			after = o.place
		}
	}
	via := nr.route
	if c.RecordKey != nil {
		via.declared = true
	}
	at := b.coalesce(nr.op, via, items, after)
	if c.RecordKey != nil {
		b.addRecord(nr, c)
	}
	g := &b.coalesced[at]
	m.place = g.place
	if g.n == 0 {
		g.first = len(b.callers)
	} else {
		b.callers[g.last].next = len(b.callers)
	}
	g.last = len(b.callers)
	if nr.op == opTake && !nr.route.splitKey { // each part would be granted a different number
		m.leaseWanted = items[0].LeaseWanted
	}
	before := g.n
	if g.n += 1 + m.leaseWanted; g.n > 1 && before <= 1 {
		b.runs[g.place.run].several++
	}
	b.callers = append(b.callers, m)
}

// addRecord adds the record of a call to the last command, which is that of the call alone.
func (b *batch) addRecord(nr *nodeRequest, c limit.Call) {
	cmd := &b.commands[len(b.commands)-1]
	cmd.once, cmd.keep, cmd.hold = b.copyName(c.RecordKey), c.RecordTTL, c.Hold
	cmd.settlement, cmd.free = nr.settlement, !b.opts.declared && !nr.route.declared
}

// coalesce returns the coalesced call for a call that must not be decided earlier than at after: an
// existing coalesced call of equal calls, or a new one.
func (b *batch) coalesce(what op, via route, items []limit.Item, after position) int {
	if what == opRefund || what == opSettle || b.opts.separate || via.declared {
		at := b.newCoalescedCall(what, via, items, after)
		b.runs[b.coalesced[at].place.run].repeats = true
		return at
	}
	hash := hashCall(what, items)
	cell, repeats := hash%tableSize, false
	for ; b.table[cell] != 0; cell = (cell + 1) % tableSize {
		at := int(b.table[cell]) - 1
		g := &b.coalesced[at]
		if g.hash != hash || b.runs[g.place.run].op != what || !sameCall(g.items, items) {
			continue
		}
		if !g.place.before(after) {
			return at
		}
		repeats = true
		break // too early; later calls join the new coalesced call
	}
	at := b.newCoalescedCall(what, via, items, after)
	b.coalesced[at].hash = hash
	if repeats {
		b.runs[b.coalesced[at].place.run].repeats = true
	}
	b.table[cell] = int16(at + 1)
	return at
}

// newCoalescedCall adds a coalesced call to a run of its shape.
func (b *batch) newCoalescedCall(what op, via route, items []limit.Item, after position) int {
	items = b.copyItems(items)
	command := b.command(via, items, after.command)
	c := &b.commands[command]
	at := -1
	for i := c.first; i >= 0; i = b.runs[i].next {
		if (command > after.command || i >= after.run) && b.runs[i].op == what && sameShape(b.runs[i].shape, items) {
			at = i
		}
	}
	if at < 0 {
		at = len(b.runs)
		b.runs = append(b.runs, callRun{op: what, shape: items, next: -1, first: -1})
		if c.first < 0 {
			c.first = at
		} else {
			b.runs[c.last].next = at
		}
		c.last = at
	}
	id := len(b.coalesced)
	b.coalesced = append(b.coalesced, coalescedCall{items: items, place: position{command, at, b.runs[at].coalesced}})
	b.appendTo(&b.runs[at], id)
	return id
}

// appendTo makes a coalesced call the last one of a run.
func (b *batch) appendTo(r *callRun, call int) {
	if r.first < 0 {
		r.first = call
	} else {
		b.coalesced[r.last].next = call
	}
	b.coalesced[call].next, r.last = -1, call
	r.coalesced++
}

// copyItems copies the items of a call and their names.
func (b *batch) copyItems(items []limit.Item) []limit.Item {
	first := len(b.items)
	for i := range items {
		it := items[i]
		it.Name = b.copyName(it.Name)
		b.items = append(b.items, it)
	}
	return b.items[first:len(b.items):len(b.items)]
}

// copyName copies a name.
func (b *batch) copyName(name []byte) []byte {
	begin := len(b.names)
	b.names = append(b.names, name...)
	return b.names[begin:len(b.names):len(b.names)]
}

// command returns the index of a command that can hold a call of the items. It searches
// from index from on, and adds a command if there is none.
func (b *batch) command(via route, items []limit.Item, from int) int {
	slot := uint16(0)
	if !b.opts.acrossSlots || via.declared {
		slot = items[0].HashSlot()
	}
	for i := from; i < len(b.commands); i++ {
		if c := &b.commands[i]; !via.declared && !c.route.declared && c.slot == slot {
			return i
		}
	}
	b.commands = append(b.commands, command{slot: slot, route: via, first: -1})
	return len(b.commands) - 1
}

func hashCall(what op, items []limit.Item) uint64 {
	h := uint64(what)
	for i := range items {
		it := &items[i]
		h = h*0x9E3779B97F4A7C15 + maphash.Bytes(hashSeed, it.Name) + uint64(it.Cost)
	}
	return h
}

// sameShape reports whether two calls have the same limits and costs.
func sameShape(a, b []limit.Item) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Limit != b[i].Limit || a[i].Cost != b[i].Cost || a[i].Bounds != b[i].Bounds {
			return false
		}
	}
	return true
}

// sameCall reports whether two calls have the same limits, costs and buckets.
func sameCall(a, b []limit.Item) bool {
	if !sameShape(a, b) {
		return false
	}
	for i := range a {
		if string(a[i].Name) != string(b[i].Name) {
			return false
		}
	}
	return true
}
