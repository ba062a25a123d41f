package load

import (
	"math"
	"slices"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

func TestUniformKeysAreEquallyLikely(t *testing.T) {
	const n = 100
	keys := Uniform(n)
	counts := make([]int, n)
	for _, key := range keys {
		counts[key]++
	}
	mean := float64(len(keys)) / n
	for key, count := range counts {
		// Six standard deviations.
		if math.Abs(float64(count)-mean) > 6*math.Sqrt(mean) {
			t.Errorf("key %d was drawn %d times, the mean is %.0f", key, count, mean)
		}
	}
}

func TestManyUniformKeysAreNearlyAllDrawn(t *testing.T) {
	const n = 200_000
	keys := Uniform(n)
	slices.Sort(keys)
	if got := len(slices.Compact(keys)); got < n*97/100 {
		t.Errorf("%d of %d keys were drawn", got, n)
	}
}

func TestZipfKeysFollowTheirLaw(t *testing.T) {
	const n, s = 1000, 1.1
	keys := Zipf(n, s)
	counts := make([]int, n)
	for _, key := range keys {
		counts[key]++
	}
	sum := 0.0
	for k := range n {
		sum += math.Pow(float64(k+1), -s)
	}
	for _, key := range []int{0, 1, 9, 99} {
		want := float64(len(keys)) * math.Pow(float64(key+1), -s) / sum
		if math.Abs(float64(counts[key])-want) > 6*math.Sqrt(want) {
			t.Errorf("key %d was drawn %d times, want %.0f", key, counts[key], want)
		}
	}
}

func TestEachHasEveryKeyOnce(t *testing.T) {
	if got := Each(4); !slices.Equal(got, Keys{0, 1, 2, 3}) {
		t.Errorf("Each(4) = %v", got)
	}
}

func TestRouteSendsEachKeyToTheOwnerOfItsSlot(t *testing.T) {
	const nodes = 3
	owner := func(slot uint16) int { return int(slot) * nodes / limit.NumHashSlots }
	keys := Uniform(500)
	parts := keys.Route("t"+Hole, owner, nodes)
	total := 0
	for node, part := range parts {
		total += len(part)
		for _, key := range part {
			if slot := limit.HashSlot([]byte(Fill("t"+Hole, key))); owner(slot) != node {
				t.Fatalf("key %d with slot %d was sent to node %d", key, slot, node)
			}
		}
		if share := float64(len(part)) / float64(len(keys)); share < 0.25 || share > 0.42 {
			t.Errorf("node %d got %.2f of the keys", node, share)
		}
	}
	if total != len(keys) {
		t.Errorf("%d of %d keys were routed", total, len(keys))
	}
}

func TestRouteKeepsTheOrder(t *testing.T) {
	keys := Keys{5, 1, 4, 1, 3}
	parts := keys.Route(Hole, func(uint16) int { return 1 }, 2)
	if len(parts[0]) != 0 || !slices.Equal(parts[1], keys) {
		t.Errorf("parts = %v", parts)
	}
}
