package cluster

import (
	"crypto/sha1"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

//go:embed scripts/bucket.lua
var bucketLua string

//go:embed scripts/take.lua
var takeLua string

//go:embed scripts/refund.lua
var refundLua string

// clockLine is the one line in which the scripts read the clock. Tests run a
// text in which only this line differs.
const clockLine = "local time = redis.call('TIME') -- the only clock\n"

// formatLine is the one line that says in which format new buckets are written.
const formatLine = "local WRITE_FORMAT = 1 -- the format of new buckets\n"

// script is a Lua text and the SHA-1 by which Redis knows it.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}

// scripts are the texts that a store runs.
type scripts struct{ take, refund script }

// newScripts joins the texts. Format is the one in which new buckets are
// written.
func newScripts(format int) scripts {
	bucket := strings.Replace(bucketLua, formatLine, strings.Replace(formatLine, "1", strconv.Itoa(format), 1), 1)
	return scripts{take: newScript(bucket + "\n" + takeLua), refund: newScript(bucket + "\n" + refundLua)}
}

// Flags of an item's parameters, see read_params in bucket.lua.
const (
	flagField    = 1
	flagEnforced = 2
)

// encodeParams encodes what a script needs to know of an item's limit.
func encodeParams(it *limit.Item) []byte {
	p := &it.Limit.Params
	flags := byte(0)
	if it.KeyLen < len(it.Name) {
		flags |= flagField
	}
	if it.Enforced() {
		flags |= flagEnforced
	}
	b := make([]byte, 0, 2+8*8)
	b = append(b, byte(p.Algorithm), flags)
	for _, n := range [...]int64{p.Count, p.Period, p.Capacity, p.Granule()} {
		b = appendDouble(b, n)
	}
	if p.Algorithm == limit.AlgorithmCalendarWindow {
		for _, n := range it.Bounds {
			b = appendDouble(b, n)
		}
	}
	return b
}

func appendDouble(b []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
}

// keysOf returns the KEYS of a call, and the field of each item.
func keysOf(items []limit.Item) (keys []string, fields []string) {
	fields = make([]string, len(items))
	hash := ""
	for i := range items {
		it := &items[i]
		if it.KeyLen < len(it.Name) {
			hash = string(it.Name[:it.KeyLen])
			fields[i] = string(it.Name[it.KeyLen:])
		}
	}
	if hash != "" {
		keys = append(keys, hash)
	}
	for i := range items {
		if fields[i] == "" {
			keys = append(keys, string(items[i].Name))
		}
	}
	return keys, fields
}

// takeArgs returns KEYS and ARGV of a take call. Verb is "take" or "peek".
func takeArgs(verb string, items []limit.Item) (keys []string, args []any) {
	keys, fields := keysOf(items)
	args = append(make([]any, 0, 1+3*len(items)), verb)
	for i := range items {
		args = append(args, encodeParams(&items[i]), items[i].Cost, fields[i])
	}
	return keys, args
}

// refundArgs returns KEYS and ARGV of a refund call.
func refundArgs(items []limit.Item) (keys []string, args []any) {
	keys, fields := keysOf(items)
	args = make([]any, 0, 4*len(items))
	for i := range items {
		args = append(args, encodeParams(&items[i]), items[i].Cost, items[i].Window, fields[i])
	}
	return keys, args
}

// replyPerItem is the number of integers a take call replies for each item.
const replyPerItem = 5

// errReply is returned for a reply that no script of ours makes.
var errReply = errors.New("decode reply: not what the script replies")

// decodeTake writes the reply of a take call into its items. When the store's
// clock lies outside the calendar boundaries that were sent, it decides
// nothing and returns that clock, in microseconds.
func decodeTake(reply any, items []limit.Item) (clock int64, err error) {
	numbers, ok := reply.([]any)
	if !ok {
		return 0, errReply
	}
	if len(numbers) == 2 {
		clock, ok := numbers[1].(int64)
		if !ok {
			return 0, errReply
		}
		return clock, nil
	}
	if len(numbers) != replyPerItem*len(items) {
		return 0, fmt.Errorf("%w: %d numbers for %d buckets", errReply, len(numbers), len(items))
	}
	var n [replyPerItem]int64
	for i := range items {
		for j := range n {
			if n[j], ok = numbers[i*replyPerItem+j].(int64); !ok {
				return 0, errReply
			}
		}
		items[i].Verdict = limit.Verdict{Allowed: n[0] == 1, Remaining: n[1], Wait: n[2], Reset: n[3], Window: n[4]}
		items[i].Source = limit.SourceStore
	}
	return 0, nil
}
