package cluster

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/limitgate/limitgate/limit"
)

// Flags of a limit, see read_limit in begin.lua.
const (
	flagField    = 1
	flagEnforced = 2
	flagOneField = 4
)

// encode writes the commands of a flight into f.out, see decide.lua.
func (f *flight) encode(sha string) {
	for i := range f.commands {
		c := &f.commands[i]
		c.start = len(f.out)
		f.encodeCommand(c, sha)
		c.end = len(f.out)
	}
}

func (f *flight) encodeCommand(c *command, sha string) {
	f.body = f.body[:0]
	keys, args := 0, 0
	if c.settlement != nil {
		f.encodeSettlement(c, sha)
		return
	}
	if c.once != nil {
		f.body = appendBulk(f.body, c.once)
		keys++
	}
	for r := c.first; r >= 0; r = f.runs[r].next {
		for g := f.runs[r].first; g >= 0; g = f.groups[g].next {
			keys += f.encodeKeys(f.groups[g].items)
		}
	}
	for r := c.first; r >= 0; r = f.runs[r].next {
		args += f.encodeRun(c, &f.runs[r])
	}
	numkeys, declared := keys, f.opts.declared || c.way.alone
	if !declared {
		numkeys = 0
		args++
	}
	f.encodeCall(c, sha, numkeys, keys+args)
	if !declared {
		f.out = appendNumber(f.out, int64(keys))
	}
	f.out = append(f.out, f.body...)
}

// encodeCall writes how a command begins whose words number so many.
func (f *flight) encodeCall(c *command, sha string, numkeys, words int) {
	if c.way.asking {
		f.out = appendCommand(f.out, "ASKING")
	}
	f.out = appendArray(f.out, 3+words)
	f.out = appendBulk(f.out, "EVALSHA")
	f.out = appendBulk(f.out, sha)
	f.out = appendNumber(f.out, int64(numkeys))
}

// encodeKeys writes the keys of a call, and returns how many.
func (f *flight) encodeKeys(items []limit.Item) int {
	n, hash := 0, false
	for i := range items {
		if it := &items[i]; it.KeyLen < len(it.Name) && !hash {
			hash = true
			f.body = appendBulk(f.body, it.Name[:it.KeyLen])
			n++
		}
	}
	for i := range items {
		if it := &items[i]; it.KeyLen == len(it.Name) {
			f.body = appendBulk(f.body, it.Name)
			n++
		}
	}
	return n
}

// words are the names of what a run does, for one check a call and for several.
var words = [...][2]string{verbTake: {"take", "takes"}, verbPeek: {"peek", "peeks"}, verbRefund: {"refund", "refund"}}

// encodeRun writes a run, and returns how many arguments it has.
func (f *flight) encodeRun(c *command, r *run) int {
	word := words[r.verb][0]
	switch {
	case c.once != nil && r.verb == verbRefund:
		word = "revoke"
	case c.hold != limit.HoldNone:
		word = "hold"
	case c.once != nil:
		word = "once"
	case r.several:
		word = words[r.verb][1]
	}
	f.body = appendBulk(f.body, word)
	f.body = appendNumber(f.body, int64(len(r.shape)))
	f.body = appendNumber(f.body, int64(r.groups))
	n := 3
	for i := range r.shape {
		it := &r.shape[i]
		var text [128]byte // the longest is 2 + 5 doubles + 3 numbers of 20 digits
		f.body = appendBulk(f.body, appendLimit(text[:0], it))
		n++
		if it.Limit.OneField() {
			f.body = appendBulk(f.body, it.Name[it.KeyLen:])
			n++
		}
	}
	if c.once != nil && r.verb == verbTake {
		n += f.encodeHold(c, r)
	}
	for at := r.first; at >= 0; at = f.groups[at].next {
		n += f.encodeGroup(r, &f.groups[at])
	}
	return n
}

func (f *flight) encodeGroup(r *run, g *group) int {
	n := 0
	if r.several {
		f.body = appendNumber(f.body, g.n)
		n++
	}
	for i := range g.items {
		if it := &g.items[i]; it.KeyLen < len(it.Name) && !it.Limit.OneField() {
			f.body = appendBulk(f.body, it.Name[it.KeyLen:])
			n++
		}
	}
	if r.verb != verbRefund {
		return n
	}
	for i := range g.items {
		f.body = appendNumber(f.body, g.items[i].Window)
		n++
	}
	return n
}

// appendLimit appends what the script needs to know of an item's limit, and its
// cost.
func appendLimit(b []byte, it *limit.Item) []byte {
	p := &it.Limit.Params
	flags := int64(0)
	if it.KeyLen < len(it.Name) {
		flags |= flagField
	}
	if it.Enforced() {
		flags |= flagEnforced
	}
	if it.Limit.OneField() {
		flags |= flagOneField
	}
	b = strconv.AppendInt(b, int64(p.Algorithm)*10+flags, 10)
	for _, n := range [...]int64{p.Count, p.Period, p.Capacity, p.Granule(), it.Cost} {
		b = appendDouble(b, n)
	}
	switch p.Algorithm {
	case limit.AlgorithmTokenBucket:
		b = append(strconv.AppendInt(b, p.Count, 10), '/')
		b = append(strconv.AppendInt(b, p.Period, 10), '/')
		b = append(strconv.AppendInt(b, p.Capacity, 10), ';')
	case limit.AlgorithmCalendarWindow:
		for _, at := range it.Bounds {
			b = appendDouble(b, at)
		}
	}
	return b
}

// appendDouble appends a number as Lua keeps it: all that are sent are exact so.
func appendDouble(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
}

func appendArray(b []byte, n int) []byte {
	b = strconv.AppendInt(append(b, '*'), int64(n), 10)
	return append(b, '\r', '\n')
}

func appendBulk[S string | []byte](b []byte, s S) []byte {
	b = strconv.AppendInt(append(b, '$'), int64(len(s)), 10)
	b = append(b, '\r', '\n')
	b = append(b, s...)
	return append(b, '\r', '\n')
}

func appendNumber(b []byte, n int64) []byte {
	var digits [20]byte
	return appendBulk(b, strconv.AppendInt(digits[:0], n, 10))
}
