package cluster

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// The flags of a limit, see read_limit in limits.lua.
const (
	flagField    = 1
	flagEnforced = 2
	flagOneField = 4
	flagDistinct = 8
	flagAtSight  = 16
)

// encode writes the commands of a batch into b.out, see main.lua.
func (b *batch) encode(sha string) {
	for i := range b.commands {
		c := &b.commands[i]
		c.start = len(b.out)
		b.encodeCommand(c, sha)
		c.end = len(b.out)
	}
}

func (b *batch) encodeCommand(c *command, sha string) {
	b.body = b.body[:0]
	keys, args := 0, 0
	if c.settlement != nil {
		b.encodeSettlement(c, sha)
		return
	}
	if c.once != nil {
		b.body = resp.AppendBulk(b.body, c.once)
		keys++
	}
	for r := c.first; r >= 0; r = b.runs[r].next {
		if b.runs[r].several > 0 {
			b.splitRun(r)
		}
		for g := b.runs[r].first; g >= 0; g = b.coalesced[g].next {
			keys += b.encodeKeys(b.coalesced[g].items)
		}
	}
	for r := c.first; r >= 0; r = b.runs[r].next {
		args += b.encodeRun(c, &b.runs[r])
	}
	if b.opts.declared || c.route.declared {
		b.encodeCall(c, sha, keys, keys+args)
	} else {
		b.encodeCall(c, sha, 0, 1+keys+args)
		b.out = resp.AppendNumber(b.out, int64(keys))
	}
	b.out = append(b.out, b.body...)
}

// encodeCall writes the start of a command, whose keys and arguments number words.
func (b *batch) encodeCall(c *command, sha string, numkeys, words int) {
	if c.route.asking {
		b.out = resp.AppendCommand(b.out, "ASKING")
	}
	b.out = resp.AppendArray(b.out, 3+words)
	b.out = resp.AppendBulk(b.out, "EVALSHA")
	b.out = resp.AppendBulk(b.out, sha)
	b.out = resp.AppendNumber(b.out, int64(numkeys))
}

// minSplit is how many calls of one check a run needs to be split: the words of another run cost
// more than a few numbers.
const minSplit = 32

// splitRun moves the calls of several checks of run id, which has some, into a run of their own behind
// it, so that the script receives no number of checks for the others.
func (b *batch) splitRun(id int) {
	one := b.runs[id]
	if one.coalesced-one.several < minSplit || !one.independent() {
		return
	}
	several := callRun{op: one.op, shape: one.shape, next: one.next, first: -1, several: one.several}
	at := one.first
	one.next, one.first, one.coalesced, one.several = len(b.runs), -1, 0, 0
	for at >= 0 {
		next := b.coalesced[at].next
		if b.coalesced[at].n > 1 {
			b.appendTo(&several, at)
		} else {
			b.appendTo(&one, at)
		}
		at = next
	}
	b.runs[id] = one
	b.runs = append(b.runs, several)
}

// independent reports whether no two calls of a run share a bucket, so that they may be decided
// in any order.
func (r *callRun) independent() bool {
	if r.repeats {
		return false
	}
	return len(r.shape) == 1 || !slices.ContainsFunc(r.shape, func(it limit.Item) bool { return !it.Limit.FixedField() })
}

// encodeKeys writes the keys of a call and returns their number.
func (b *batch) encodeKeys(items []limit.Item) int {
	n, hash := 0, false
	for i := range items {
		if it := &items[i]; it.KeyLen < len(it.Name) && !hash {
			hash = true
			b.body = resp.AppendBulk(b.body, it.Name[:it.KeyLen])
			n++
		}
	}
	for i := range items {
		if it := &items[i]; it.KeyLen == len(it.Name) {
			b.body = resp.AppendBulk(b.body, it.Name)
			n++
		}
	}
	return n
}

// opNames are the script's names of an op, for one check a call and for several.
var opNames = [...][2]string{opTake: {"take", "takes"}, opPeek: {"peek", "peeks"}, opRefund: {"refund", "refund"}}

// encodeRun writes a run and returns the number of its arguments.
func (b *batch) encodeRun(c *command, r *callRun) int {
	word := opNames[r.op][0]
	switch {
	case c.once != nil && r.op == opRefund:
		word = "revoke"
	case c.hold != limit.HoldNone:
		word = "hold"
	case c.once != nil:
		word = "once"
	case r.several > 0:
		word = opNames[r.op][1]
	}
	b.body = resp.AppendBulk(b.body, word)
	b.body = resp.AppendNumber(b.body, int64(len(r.shape)))
	b.body = resp.AppendNumber(b.body, int64(r.coalesced))
	n := 3
	atSight := c.once == nil && r.atSight()
	for i := range r.shape {
		it := &r.shape[i]
		flags := flagsOf(it)
		if len(r.shape) == 1 && !r.repeats && (flags&flagField == 0 || flags&flagOneField != 0) {
			flags |= flagDistinct
		}
		if atSight {
			flags |= flagAtSight
		}
		var text [128]byte // the longest is 2 + 5 doubles + 4 doubles
		b.body = resp.AppendBulk(b.body, appendLimit(text[:0], it, flags))
		n++
		if it.Limit.FixedField() {
			b.body = resp.AppendBulk(b.body, it.Name[it.KeyLen:])
			n++
		}
	}
	if c.once != nil && r.op == opTake {
		n += b.encodeHold(c, r)
	}
	for at := r.first; at >= 0; at = b.coalesced[at].next {
		n += b.encodeCoalescedCall(r, &b.coalesced[at])
	}
	return n
}

func (b *batch) encodeCoalescedCall(r *callRun, g *coalescedCall) int {
	n := 0
	if r.several > 0 {
		b.body = resp.AppendNumber(b.body, g.n)
		n++
	}
	for i := range g.items {
		if it := &g.items[i]; it.KeyLen < len(it.Name) && !it.Limit.FixedField() {
			b.body = resp.AppendBulk(b.body, it.Name[it.KeyLen:])
			n++
		}
	}
	if r.op != opRefund {
		return n
	}
	for i := range g.items {
		b.body = resp.AppendNumber(b.body, g.items[i].Window)
		n++
	}
	return n
}

// atSight reports whether the script can decide the calls of a run directly.
func (r *callRun) atSight() bool {
	if r.op != opTake && r.op != opPeek {
		return false
	}
	if it := &r.shape[0]; len(r.shape) == 1 && it.Limit.Params.Algorithm == bucket.AlgorithmFixedWindow {
		return it.KeyLen == len(it.Name)
	}
	return !slices.ContainsFunc(r.shape, func(it limit.Item) bool { return !it.Enforced() || !it.Limit.Params.HasLevel() })
}

// flagsOf returns the flags of an item that do not depend on its run.
func flagsOf(it *limit.Item) int64 {
	flags := int64(0)
	if it.KeyLen < len(it.Name) {
		flags |= flagField
	}
	if it.Enforced() {
		flags |= flagEnforced
	}
	if it.Limit.FixedField() {
		flags |= flagOneField
	}
	return flags
}

// appendLimit appends the parameters of an item's limit that the script needs, the flags and
// the item's cost.
func appendLimit(b []byte, it *limit.Item, flags int64) []byte {
	p := &it.Limit.Params
	b = strconv.AppendInt(b, int64(p.Algorithm), 10)
	b = strconv.AppendInt(b, flags, 36)
	for _, n := range [...]int64{p.Count, p.Period, p.Capacity, p.Granule(), it.Cost} {
		b = appendDouble(b, n)
	}
	switch p.Algorithm {
	case bucket.AlgorithmTokenBucket:
		for _, n := range [...]int64{p.Count, p.Period, p.Capacity} {
			b = strconv.AppendInt(append(b, '/'), n, 36)
		}
	case bucket.AlgorithmCalendarWindow:
		for _, at := range it.Bounds {
			b = appendDouble(b, at)
		}
	}
	return b
}

// appendDouble appends a number as a Lua number: every number that is sent is exact as a
// double.
func appendDouble(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
}
