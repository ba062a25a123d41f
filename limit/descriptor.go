package limit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/limit/bucket"
)

// DescriptorOrdinal is the Limit.Ordinal of the limits of descriptors: they are in no Set.
const DescriptorOrdinal = -2

// DescriptorID is the id under which the limits of descriptors are counted together: the paths of
// their rules are too many for a metric.
const DescriptorID = "descriptor"

// Descriptor is a bucket that a request names itself, with its limit. Envoy's requests consist of
// descriptors: https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ratelimit/v3/rls.proto
type Descriptor struct {
	Limit *Limit
	// Counter names the bucket among those of all limits of descriptors: 1 to MaxCounterBytes of any
	// bytes.
	Counter string
	// Slot, unless empty, chooses the bucket's hash slot: the same for all requests that name the
	// bucket. Descriptors of one slot that stand beside each other are decided together.
	Slot string
	Cost int64 // 0 to MaxCost; 0 takes nothing
}

// MaxDescriptors bounds the descriptors of one request, and MaxCounterBytes a name of a counter.
const (
	MaxDescriptors  = 256
	MaxCounterBytes = 4096
	// maxTogether bounds the descriptors of one call, which a store decides at once.
	maxTogether = 16
)

// descriptorPrefix begins the names of descriptors' buckets: lg:d:{COUNTER}, each in a hash slot of its
// own, or lg:d:{SLOT}COUNTER. Counters and slots are escaped as values are.
const descriptorPrefix = "lg:d:{"

// AppendDescriptorKey appends the key of a counter's bucket in the store. Slot may be empty.
func AppendDescriptorKey(dst []byte, slot, counter string) []byte {
	dst, _ = appendDescriptorKey(dst, slot, counter)
	return dst
}

// appendDescriptorKey also returns the end of the part that chooses the hash slot.
func appendDescriptorKey(dst []byte, slot, counter string) (key []byte, tagEnd int) {
	dst = append(dst, descriptorPrefix...)
	if slot == "" {
		dst = append(appendEscaped(dst, counter), TagEnd)
		return dst, len(dst)
	}
	dst = append(appendEscaped(dst, slot), TagEnd)
	tagEnd = len(dst)
	return appendEscaped(dst, counter), tagEnd
}

// NewDescriptorLimit returns a limit of descriptors: count units in each window of period
// microseconds, which are counted from the epoch. ID names it for people. It fails open, and any
// number of requests may share it.
func NewDescriptorLimit(id string, count, period int64, mode Mode) (*Limit, error) {
	if count < 1 || count > bucket.MaxCapacity || period < 1 || period > bucket.MaxPeriod {
		return nil, fmt.Errorf("%d in %d us cannot be counted exactly", count, period)
	}
	rate := bucket.Rate{Count: count, Period: period, Text: fmt.Sprintf("%d/%dus", count, period)}
	p, err := rate.Params(bucket.AlgorithmFixedWindow, count)
	if err != nil {
		return nil, err
	}
	return &Limit{ID: id, Ordinal: DescriptorOrdinal, Mode: mode, Rate: rate, Params: p}, nil
}

// descriptorAlgorithms are the algorithms of descriptors.
var descriptorAlgorithms = map[string]bucket.Algorithm{
	"token_bucket": bucket.AlgorithmTokenBucket, "sliding_window": bucket.AlgorithmSlidingWindow, "fixed_window": bucket.AlgorithmFixedWindow,
}

// CompileDescriptor returns a limit of descriptors from its specification, of which it takes the id, the
// rate, the burst, the algorithm, on_error, the lease and the time zone, and the mistakes in it. A limit
// without an algorithm is a fixed window. The limit is nil if there are mistakes.
func CompileDescriptor(spec *RuleSpec) (*Limit, []Problem) {
	c := &compiler{doc: &Document{}}
	l := &Limit{ID: spec.ID.Value, Line: spec.Line, Ordinal: DescriptorOrdinal}
	own := *spec
	if !own.Algorithm.Set() {
		own.Algorithm = Text{"fixed_window", max(1, spec.Line)}
	}
	if _, known := algorithms[own.Algorithm.Value]; !known {
		word(c, own.Algorithm, "algorithm", descriptorAlgorithms)
		own.Algorithm.Value = "fixed_window" // for other mistakes
	}
	c.compileKind(&own, l)
	c.compileWords(&own, l)
	if l.Params.Algorithm.ExpiresPerUnit() {
		c.fail(own.Algorithm.Line, "algorithm", "%s is not for descriptors: use token_bucket, sliding_window or fixed_window", l.Params.Algorithm)
		return nil, c.problems
	}
	c.compileRate(&own, l)
	c.compileLease(&own, l)
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return l, nil
}

// CloseByDefault makes a limit of descriptors fail closed unless its specification says on_error. It must
// not be called once requests use the limit.
func (l *Limit) CloseByDefault() {
	if !l.onErrSet {
		l.OnError = OnErrorClosed
	}
}

// ValidID reports whether an id of a limit has the form that it must have.
func ValidID(id string) bool { return validWord(id) }

// InMode returns a limit of descriptors that differs in its mode alone.
func (l *Limit) InMode(mode Mode) *Limit {
	other := *l
	other.Mode = mode
	return &other
}

// bindDescriptors appends the items of a request that names its buckets, and a call for each, as their hash
// slots differ, but for those of one slot that stand beside each other.
func (b *Buffer) bindDescriptors(req *Request, now int64) Resolved {
	r := Resolved{FirstItem: len(b.Items), FirstCall: len(b.Calls)}
	for i := range req.Descriptors {
		d := &req.Descriptors[i]
		begin := len(b.names)
		var tagEnd int
		b.names, tagEnd = appendDescriptorKey(b.names, d.Slot, d.Counter)
		n := len(b.names)
		it := Item{Limit: d.Limit, Name: b.names[begin:n:n], KeyLen: n - begin, TagLen: tagEnd - begin, Cost: d.Cost, Bounds: d.Limit.Bounds(now)}
		together := i > 0 && d.Slot != "" && d.Slot == req.Descriptors[i-1].Slot && b.joins(b.Calls[len(b.Calls)-1], &it)
		b.Items = append(b.Items, it)
		if together {
			b.Calls[len(b.Calls)-1].Last++
		} else {
			b.Calls = append(b.Calls, Call{First: len(b.Items) - 1, Last: len(b.Items)})
		}
	}
	r.LastItem, r.LastCall = len(b.Items), len(b.Calls)
	return r
}

// joins reports whether an item can be decided in a call of its slot, which has no bucket twice.
func (b *Buffer) joins(c Call, it *Item) bool {
	return c.Last-c.First < maxTogether && !slices.ContainsFunc(b.Items[c.First:c.Last], func(other Item) bool {
		return bytes.Equal(other.Name, it.Name)
	})
}
