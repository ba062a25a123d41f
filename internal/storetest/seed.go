package storetest

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Seed returns the seed of a test that draws what it does, and prints it:
// LIMITGATE_SEED repeats a run.
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
