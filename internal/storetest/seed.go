package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// Seed returns the seed of a random test, and prints it: LIMITGATE_SEED repeats a run.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("LIMITGATE_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Logf("seed: LIMITGATE_SEED=%d", seed)
	return seed
}

// Fresh returns a name that no other test has, nor another run of this one, for unused
// buckets in a store that others use too.
func Fresh(tb testing.TB) string { return fmt.Sprintf("%s-%08x", tb.Name(), rand.Uint32()) }
