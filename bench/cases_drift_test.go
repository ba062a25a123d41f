package bench

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestDriftIsAboveZeroWhereTooMuchWasGranted(t *testing.T) {
	for _, test := range []struct {
		granted int64
		elapsed time.Duration
		want    float64
	}{
		{driftBurst, 0, 0},
		{driftBurst + 10*driftRate, 10 * time.Second, 0},
		{driftBurst + driftRate, 0, 25},
		{driftBurst, 4 * time.Second, -50},
	} {
		if got := drift(test.granted, test.elapsed); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("drift of %d in %v = %v, want %v", test.granted, test.elapsed, got, test.want)
		}
	}
}

func TestHighestDriftOfAnyRushIsKept(t *testing.T) {
	b := driftBucket{most: math.Inf(-1)}
	b.granted = driftBurst + driftRate
	b.end(0)
	b.end(4 * time.Second)
	if b.most != 25 || b.drift >= 0 {
		t.Errorf("after too much and then too little: %+v", b)
	}
}

// TestBucketsAreEmptyAtTheEndsAndNeverFull checks the conditions under which the sum of
// burst and refill is exact.
func TestBucketsAreEmptyAtTheEndsAndNeverFull(t *testing.T) {
	for _, quick := range []bool{true, false} {
		l := &lab{settings: Settings{Quick: quick}}
		content, length := float64(driftBurst), time.Duration(0)
		phases := l.driftPhases()
		for i, p := range phases {
			content += driftRate * (1 - p.times) * p.length.Seconds()
			length += p.length
			if rush := i%2 == 0; rush && content > 0 || !rush && content > driftBurst/2 {
				t.Errorf("quick %v: phase %d of %d leaves %v", quick, i, len(phases), content)
			}
			content = max(0, content)
		}
		if want := time.Minute; !quick && length != want {
			t.Errorf("it takes %v, want %v", length, want)
		}
	}
}

func TestLimitsOfDriftNameEachBucket(t *testing.T) {
	text := driftLimits([]driftBucket{{plan: 0}, {plan: 1}})
	for _, want := range []string{"t0000000: {plan: exact}", "t0000001: {plan: ten}", "lease: {size: 10, ttl: 2s}", "lease: auto"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
