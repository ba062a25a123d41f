package cluster

import (
	"cmp"
	"hash/maphash"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// maxFlight is how many calls travel together at most: larger batches make
	// a decision no cheaper, and the first in them wait for the last.
	maxFlight = 256
	// tableSize is that of the table that finds equal calls: a power of two, twice
	// as many as there can be.
	tableSize = 2 * maxFlight
)

// flight is a batch of calls that travels to a node in one pipeline. The calls
// of all callers are put into groups, one for each different call, and the
// groups into runs: those of a run ask the same limits for the same costs.
//
// Whoever owns the flight of a lane may use it, see lane.
type flight struct {
	opts     flightOptions
	commands []command
	runs     []run
	groups   []group
	members  []member
	tickets  []*ticket        // taken off the queue
	table    [tableSize]int16 // groups by hash, plus one
	out      []byte           // the encoded commands
	body     []byte
	items    []limit.Item // of the groups: callers may leave and use theirs again
	names    []byte
	states   []limit.State
	verdicts []limit.Verdict
	more     []int64
	// wishers are members whose wishes wait for the others of their group, and held
	// the verdicts of their own checks.
	wishers []int
	held    []limit.Verdict
	// finish is called with each ticket whose calls are all answered, and late with
	// calls that were decided after their callers had left, see Options.Late.
	finish func(*ticket)
	late   func(call []limit.Item, sent time.Time)
	// returned is called with the names of buckets that units came back to after their
	// callers had left, see Options.Returned.
	returned func(names []string)
	inTime   int   // calls that were answered while their callers waited
	now      int64 // the store's time of the answer being settled
	// repeated says that the answer being settled was given before.
	repeated bool
	sentAt   time.Time
	users    int // senders and readers, see lane.leave
	// missing are the commands that found no script, and heal is what is sent for
	// them.
	missing []int
	heal    []byte
	heals   int // how often
}

// flightOptions say how calls are put together.
type flightOptions struct {
	// acrossSlots says that one command may hold calls of many slots.
	acrossSlots bool
	// declared says that keys are declared as such.
	declared bool
	// separate keeps equal calls apart.
	separate bool
}

// command is one script call.
type command struct {
	slot       uint16
	way        way    // of its calls
	once       []byte // the key of the only call's answer, nil without
	keep       time.Duration
	hold       limit.Hold  // of that answer
	settlement *settlement // of the only call, nil without
	free       bool        // the settlement's script may use keys that it does not declare
	first      int         // the first of its runs, -1 before there is one
	last       int
	start, end int // where it stands in flight.out
}

// run is a row of groups in a command.
type run struct {
	verb        verb
	shape       []limit.Item // of its first group, for limits and costs
	next        int          // the command's next run, -1 after the last
	first, last int          // its groups
	groups      int
	several     bool // some group holds more than one member
}

// group is a call, and the callers that make it.
type group struct {
	items       []limit.Item
	hash        uint64
	place       place
	next        int   // the run's next group, -1 after the last
	first, last int   // its members, in the order of their arrival
	n           int64 // checks that it stands for: one for each member, and their wishes
	answered    bool
}

// member is one caller's call. Callers of a group are decided in their order.
type member struct {
	ticket *ticket
	call   limit.Call
	tag    uint64 // of the buckets that may be shared with other calls
	place  place
	wish   int64 // how many more checks it would take
	next   int   // the group's next member, -1 after the last
}

// place is where in its flight a call is decided: the command, then the run in it, then
// the group within that.
type place struct{ command, run, group int }

func (p place) before(q place) bool {
	return cmp.Or(cmp.Compare(p.command, q.command), cmp.Compare(p.run, q.run), cmp.Compare(p.group, q.group)) < 0
}

func newFlight() *flight {
	return &flight{finish: (*ticket).finished, late: func([]limit.Item, time.Time) {}, returned: func([]string) {}}
}

var hashSeed = maphash.MakeSeed()

// reset empties the flight.
func (f *flight) reset() {
	f.commands, f.runs, f.groups = f.commands[:0], f.runs[:0], f.groups[:0]
	f.missing, f.inTime, f.heals = nil, 0, 0
	clear(f.members) // lets go of tickets
	clear(f.tickets)
	f.members, f.tickets = f.members[:0], f.tickets[:0]
	f.table = [tableSize]int16{}
	f.out, f.items, f.names = f.out[:0], f.items[:0], f.names[:0]
}

// board takes the calls of a ticket on board, unless its caller has left or it
// is too late for them; it reports whether it did.
func (f *flight) board(t *ticket, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left || now.After(t.sendBy) {
		return false
	}
	t.sent = true
	first := len(f.members)
	for _, c := range t.calls {
		f.add(t, c, first)
	}
	return true
}

// add puts a call into a group. The order of a caller's calls that share a
// bucket is kept: a call never lands before an earlier one of its ticket, whose
// members begin at first, that has the same tag.
func (f *flight) add(t *ticket, c limit.Call, first int) {
	items := t.items[c.First:c.Last]
	if t.verb == verbPeek {
		c.Once = nil // nothing is granted
	}
	m := member{ticket: t, call: c, next: -1, tag: maphash.Bytes(hashSeed, items[0].Name[:items[0].TagLen])}
	after := place{}
	for i := first; i < len(f.members); i++ {
		if o := &f.members[i]; o.tag == m.tag && after.before(o.place) {
			after = o.place
		}
	}
	w := t.way
	if c.Once != nil {
		w.alone = true
	}
	at := f.join(t.verb, w, items, after)
	if c.Once != nil {
		cmd := &f.commands[len(f.commands)-1]
		cmd.once, cmd.keep, cmd.hold = f.keepName(c.Once), c.Keep, c.Hold
		cmd.settlement, cmd.free = t.settlement, !f.opts.declared && !t.way.alone
	}
	g := &f.groups[at]
	m.place = g.place
	if g.n == 0 {
		g.first = len(f.members)
	} else {
		f.members[g.last].next = len(f.members)
	}
	g.last = len(f.members)
	if t.verb == verbTake && !t.way.single { // each part would be granted another number
		m.wish = items[0].Wish
	}
	g.n += 1 + m.wish
	if g.n > 1 {
		f.runs[g.place.run].several = true
	}
	f.members = append(f.members, m)
}

// join returns the group for a call that must not be decided earlier than at
// after: one of equal calls, or a new one.
func (f *flight) join(v verb, w way, items []limit.Item, after place) int {
	if v == verbRefund || v == verbSettle || f.opts.separate || w.alone {
		return f.open(v, w, items, after)
	}
	hash := hashCall(v, items)
	cell := hash % tableSize
	for ; f.table[cell] != 0; cell = (cell + 1) % tableSize {
		at := int(f.table[cell]) - 1
		g := &f.groups[at]
		if g.hash != hash || f.runs[g.place.run].verb != v || !sameCall(g.items, items) {
			continue
		}
		if !g.place.before(after) {
			return at
		}
		break // too early; later ones join the group that is opened now
	}
	at := f.open(v, w, items, after)
	f.groups[at].hash = hash
	f.table[cell] = int16(at + 1)
	return at
}

// open opens a group in a run of its shape.
func (f *flight) open(v verb, w way, items []limit.Item, after place) int {
	items = f.keep(items)
	command := f.command(w, items, after.command)
	c := &f.commands[command]
	at := -1
	for i := c.first; i >= 0; i = f.runs[i].next {
		if (command > after.command || i >= after.run) && f.runs[i].verb == v && sameShape(f.runs[i].shape, items) {
			at = i
		}
	}
	if at < 0 {
		at = len(f.runs)
		f.runs = append(f.runs, run{verb: v, shape: items, next: -1, first: -1})
		if c.first < 0 {
			c.first = at
		} else {
			f.runs[c.last].next = at
		}
		c.last = at
	}
	r := &f.runs[at]
	id := len(f.groups)
	f.groups = append(f.groups, group{items: items, place: place{command, at, r.groups}, next: -1})
	if r.first < 0 {
		r.first = id
	} else {
		f.groups[r.last].next = id
	}
	r.last = id
	r.groups++
	return id
}

// keep copies the items of a call, and their names.
func (f *flight) keep(items []limit.Item) []limit.Item {
	first := len(f.items)
	for i := range items {
		it := items[i]
		it.Name = f.keepName(it.Name)
		f.items = append(f.items, it)
	}
	return f.items[first:len(f.items):len(f.items)]
}

// keepName copies a name.
func (f *flight) keepName(name []byte) []byte {
	begin := len(f.names)
	f.names = append(f.names, name...)
	return f.names[begin:len(f.names):len(f.names)]
}

// command returns the command in which a call of the items may travel, the first from
// one on.
func (f *flight) command(w way, items []limit.Item, from int) int {
	slot := uint16(0)
	if !f.opts.acrossSlots || w.alone {
		slot = items[0].Slot()
	}
	for i := from; i < len(f.commands); i++ {
		if c := &f.commands[i]; !w.alone && !c.way.alone && c.slot == slot {
			return i
		}
	}
	f.commands = append(f.commands, command{slot: slot, way: w, first: -1})
	return len(f.commands) - 1
}

func hashCall(v verb, items []limit.Item) uint64 {
	h := uint64(v)
	for i := range items {
		it := &items[i]
		h = h*0x9E3779B97F4A7C15 + maphash.Bytes(hashSeed, it.Name) + uint64(it.Cost)
	}
	return h
}

// sameShape reports whether two calls ask the same limits for the same costs.
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

// sameCall reports whether two calls ask the same of the same buckets.
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
