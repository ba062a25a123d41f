package memory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// named uses buckets whose names have a chosen length.
type named struct {
	*testing.T
	store *Store
	set   *limit.Set
	now   int64
}

func newNamed(t *testing.T, spec storetest.Spec) *named {
	t.Helper()
	spec.ID, spec.By = "n", []string{"tenant", "op"}
	return &named{t, New(Options{}), storetest.Compile(t, spec), 1_800_000_000e6}
}

// take takes a unit from the bucket whose name has the given length and end.
func (n *named) take(length int, end string) []limit.Item {
	n.Helper()
	op := strings.Repeat("x", length-len("lg:t:{t}:n;t;op=")-len(end)) + end
	var b limit.Buffer
	n.set.Resolve(&limit.Request{Tenant: "t", Op: op, Cost: 1}, nil, n.now, &b)
	if got := len(b.Items[0].Name); got != length {
		n.Fatalf("%q has %d bytes, want %d", b.Items[0].Name, got, length)
	}
	n.store.Take(limit.DecisionTime{Now: n.now}, b.Items, b.Calls)
	return b.Items
}

// longNames returns how many names the shards keep outside of slots, and how many slots
// refer to such a name.
func (n *named) longNames() (kept, wanted int) {
	for i := range n.store.shards {
		sh := &n.store.shards[i]
		kept += len(sh.long)
		for j := range sh.used {
			if sh.slot(j).nameLen == longName {
				wanted++
			}
		}
	}
	return kept, wanted
}

// TestLongNames checks names shorter and longer than a slot's room, most of them prefixes
// of others and all with a twin that differs in the last byte. They are separate buckets
// that are charged, refunded and reset.
func TestLongNames(t *testing.T) {
	n := newNamed(t, storetest.Spec{Rate: "1/366d", Burst: "2"})
	lengths := []int{inlineName - 2, inlineName - 1, inlineName, inlineName + 1, inlineName + 2, longName, longName + 1, 1000}
	for round, want := range []string{"true true false", "true false false", "true true false"} {
		for _, length := range lengths {
			for _, end := range []string{"a", "b"} {
				first, second, third := n.take(length, end), n.take(length, end), n.take(length, end)
				if got := fmt.Sprint(first[0].Allowed, second[0].Allowed, third[0].Allowed); got != want {
					t.Errorf("round %d, a name of %d bytes: admitted %s, want %s", round, length, got, want)
				}
				n.store.Refund(limit.DecisionTime{}, first)
			}
		}
		if got := n.store.Len(); got != 2*len(lengths) {
			t.Errorf("round %d: %d buckets are kept, want %d", round, got, 2*len(lengths))
		}
		if round == 1 {
			if count, err := n.store.Reset(t.Context(), "t", "n"); err != nil || count != int64(2*len(lengths)) {
				t.Errorf("%d buckets were reset, want %d: %v", count, 2*len(lengths), err)
			}
		}
	}
	if kept, wanted := n.longNames(); kept != wanted || kept != 2*5 {
		t.Errorf("%d long names are kept and %d slots want one, want the 10 that no slot holds", kept, wanted)
	}
}

// TestLongNamesComeAndGo checks that slots change between long and short names, and that
// no long name outlives its bucket.
func TestLongNamesComeAndGo(t *testing.T) {
	n := newNamed(t, storetest.Spec{Rate: "1000/s", Burst: "1"})
	for i := range 50_000 {
		n.now += 100 // a bucket is full again ten names later
		length := inlineName
		if i%3 == 0 {
			length = 2 * inlineName
		}
		if !n.take(length, fmt.Sprint(i))[0].Allowed {
			t.Fatalf("name %d was denied", i)
		}
	}
	kept, wanted := n.longNames()
	if kept != wanted || kept == 0 || kept > n.store.Len() {
		t.Errorf("%d long names are kept for %d slots that want one, of %d buckets", kept, wanted, n.store.Len())
	}
	if n.store.Len() > 5000 {
		t.Errorf("%d buckets are kept of 50,000 that were full again after a millisecond", n.store.Len())
	}
}

// TestNamesOfOneHash checks that buckets with the same hash are distinguished by their
// names, wherever these are stored.
func TestNamesOfOneHash(t *testing.T) {
	const hash = 7 << 32
	for _, length := range []int{inlineName, inlineName + 1} {
		sh := &New(Options{}).shards[0]
		var names [3]string
		for i := range names {
			names[i] = strings.Repeat("x", length-1) + string(rune('a'+i))
		}
		for _, name := range names[:2] {
			sh.insert(hash, []byte(name), bucket.AlgorithmFixedWindow, &bucket.State{})
		}
		for _, name := range names[:2] {
			if i := sh.find(hash, []byte(name)); i == none || sh.name(i) != name {
				t.Errorf("%q of %d bytes is not found in its slot, but in %d", name, length, i)
			}
		}
		if i := sh.find(hash, []byte(names[2])); i != none {
			t.Errorf("a name of %d bytes that nobody used is found", length)
		}
	}
}
