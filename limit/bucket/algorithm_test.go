package bucket

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// testEpoch is the start of test clocks: 2026-01-01.
const testEpoch = int64(1767225600) * 1e6

func tokenParams(tb testing.TB, rate string, burst int64) Params {
	tb.Helper()
	r, err := ParseRate(rate)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := r.Params(AlgorithmTokenBucket, burst)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// TestTokenBucketNoDrift sends buckets more requests than they admit, at rates of less
// than a unit in a microsecond and of more.
func TestTokenBucketNoDrift(t *testing.T) {
	for _, rate := range []string{"3/s", "7/s", "999983/d", "1299709/s", "2999999/s", "3000000/s", "1/366d", "1099511627776/366d"} {
		t.Run(rate, func(t *testing.T) { noDrift(t, rate, 200_000) })
	}
}

// noDrift makes n decisions on a bucket that refills less than they ask for, and then
// takes the rest: the admitted units equal the burst and the exact refill, rounded down
// once.
func noDrift(t *testing.T, rate string, n int64) {
	t.Helper()
	p := tokenParams(t, rate, 1)
	// Two fifths of the time in which a unit refills, so that most admissions leave a
	// fraction of a unit.
	step := max(1, 2*p.Period/(5*p.Count))
	// No step refills more than one request takes, and a bucket of two never overflows:
	// no unit may be missing at the end.
	cost := (p.Count*(step+1) + p.Period - 1) / p.Period
	p = tokenParams(t, rate, 2*cost)
	now, admitted := testEpoch, int64(0)
	var s State
	ask := func(units int64) {
		next := s
		if v, _, _ := Decide(&p, nil, &next, now, units); v.Allowed { // denials are not stored
			s = next
			admitted += units
		}
	}
	for i := range n {
		ask(cost)
		now += step + i%2
	}
	for units := p.Capacity; units > 0; units-- {
		ask(units)
	}
	refilled := new(big.Int).Mul(big.NewInt(now-testEpoch), big.NewInt(p.Count))
	if want := refilled.Div(refilled, big.NewInt(p.Period)).Int64() + p.Capacity; admitted != want {
		t.Errorf("admitted %d units, the exact number is %d", admitted, want)
	}
}

// result is a decision and the states after it.
type result struct {
	Verdict
	Next      State // after the units were taken, if they were allowed
	Kept      State // without them
	Rewritten bool
}

// decide calls Decide on a copy of s.
func decide(p *Params, bounds *Bounds, s State, now, cost int64) (result, bool) {
	v, rewritten, ok := Decide(p, bounds, &s, now, cost)
	r := result{Verdict: v, Next: s, Kept: s, Rewritten: rewritten}
	if v.Allowed {
		Undo(p, &r.Kept, cost)
	}
	return r, ok
}

// anyParams draws limits from the whole accepted range, edges included.
func anyParams(t *rapid.T, a Algorithm) Params {
	count := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, MaxCapacity), rapid.Just(int64(MaxCapacity))).Draw(t, "count")
	period := 1e6 * rapid.OneOf(rapid.Int64Range(1, 3600), rapid.Int64Range(1, MaxPeriod/1e6), rapid.Just(MaxPeriod/int64(1e6))).Draw(t, "period")
	r := Rate{Count: count, Period: period, Text: fmt.Sprintf("%d/%ds", count, period/1e6)}
	burst := count
	if a == AlgorithmTokenBucket {
		burst = rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, MaxCapacity)).Draw(t, "burst")
	}
	p, err := r.Params(a, burst)
	if err != nil {
		p, err = r.Params(a, 1)
	}
	if err != nil {
		t.Fatalf("a burst of 1 is refused: %v", err)
	}
	return p
}

// history drives a bucket through random decisions, changes of its limit and jumps of the
// clock. It calls check after each decision with the state before it.
func history(t *rapid.T, check func(p *Params, before State, now, cost int64, r result)) {
	a := rapid.SampledFrom([]Algorithm{AlgorithmTokenBucket, AlgorithmSlidingWindow, AlgorithmFixedWindow}).Draw(t, "algorithm")
	variants := []Params{anyParams(t, a), anyParams(t, a)}
	p := &variants[0]
	now := testEpoch + rapid.Int64Range(0, 1e9).Draw(t, "start")
	var s State
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 19).Draw(t, "event") {
		case 0:
			p = &variants[rapid.IntRange(0, 1).Draw(t, "variant")]
		case 1:
			now -= rapid.Int64Range(0, 2*p.Period).Draw(t, "back")
		default:
			now += rapid.OneOf(rapid.Int64Range(0, 2000), rapid.Int64Range(0, 2*p.Period)).Draw(t, "forward")
		}
		now = max(now, MaxPeriod)
		cost := min(MaxCost, rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, p.Capacity+1)).Draw(t, "cost"))
		r, _ := decide(p, nil, s, now, cost)
		check(p, s, now, cost, r)
		switch {
		case r.Allowed:
			s = r.Next
		case r.Rewritten:
			s = r.Kept
		}
	}
}

// TestTruthfulWait checks the wait of every denial: the same cost is denied a millisecond
// before the wait is over, and admitted when it is over.
func TestTruthfulWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history(t, func(p *Params, before State, now, cost int64, r result) {
			if r.Allowed || cost > p.Capacity {
				if !r.Allowed && r.Wait != Never {
					t.Fatalf("cost %d above capacity %d waits %d", cost, p.Capacity, r.Wait)
				}
				return
			}
			kept := before
			if r.Rewritten {
				kept = r.Kept
			}
			if r.Wait < 1 {
				t.Fatalf("denied with a wait of %d", r.Wait)
			}
			early, _ := decide(p, nil, kept, now+(r.Wait-1)*1000, cost)
			if early.Allowed {
				t.Fatalf("wait %d ms, but admitted at %d ms", r.Wait, r.Wait-1)
			}
			there, _ := decide(p, nil, kept, now+r.Wait*1000, cost)
			if !there.Allowed {
				t.Fatalf("wait %d ms, and then denied with a wait of %d", r.Wait, there.Wait)
			}
		})
	})
}

// TestExpiresMeansUntouched checks Expires: from that instant on the state and the zero
// state decide alike, and a microsecond before they do not both look full.
func TestExpiresMeansUntouched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history(t, func(p *Params, _ State, now, _ int64, r result) {
			if !r.Allowed {
				return
			}
			at := max(now, Expires(p.Algorithm, &r.Next))
			cost := min(MaxCost, p.Capacity)
			kept, _ := decide(p, nil, r.Next, at, cost)
			fresh, _ := decide(p, nil, State{}, at, cost)
			if kept.Verdict != fresh.Verdict {
				t.Fatalf("at its expiry the bucket says %+v, an untouched one %+v", kept.Verdict, fresh.Verdict)
			}
			if p.Capacity > MaxCost || at == now {
				return
			}
			before, _ := decide(p, nil, r.Next, at-1, p.Capacity)
			if before.Allowed {
				t.Fatalf("the bucket is as good as untouched %d us before it expires", 1)
			}
		})
	})
}

// TestNeverAboveCapacity bounds the units that a window or bucket admits at one instant.
func TestNeverAboveCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history(t, func(p *Params, _ State, _, cost int64, r result) {
			if r.Remaining < 0 || r.Remaining > p.Capacity {
				t.Fatalf("remaining %d of %d", r.Remaining, p.Capacity)
			}
			if r.Allowed && r.Remaining > p.Capacity-cost {
				t.Fatalf("remaining %d of %d after taking %d", r.Remaining, p.Capacity, cost)
			}
		})
	})
}

// TestChangedLimit checks the carry-over rules of a token bucket by example.
func TestChangedLimit(t *testing.T) {
	slow, fast := tokenParams(t, "1/m", 1), tokenParams(t, "100/s", 100)
	r, _ := decide(&slow, nil, State{}, testEpoch, 1)
	drained := r.Next

	raised, _ := decide(&fast, nil, drained, testEpoch, 1)
	if raised.Allowed || raised.Wait != 10 || !raised.Rewritten {
		t.Errorf("1/m to 100/s: got %+v, want a wait of 10 ms", raised.Verdict)
	}
	if r, _ = decide(&fast, nil, raised.Kept, testEpoch+10_000, 1); !r.Allowed {
		t.Errorf("10 ms after the raise: %+v, want it admitted", r.Verdict)
	}

	big := tokenParams(t, "100/s", 200)
	r, _ = decide(&big, nil, State{}, testEpoch, 1)
	lowered, _ := decide(&slow, nil, r.Next, testEpoch, 1)
	if !lowered.Allowed || lowered.Remaining != 0 {
		t.Errorf("200 units under a burst of 1: %+v, want one admitted and none left", lowered.Verdict)
	}
	if r, _ = decide(&big, nil, lowered.Next, testEpoch, 1); r.Allowed {
		t.Errorf("a larger burst added units at once: %+v", r.Verdict)
	}
}

// TestWindowChangedPeriod checks that used units count while the old window runs, and
// that a raised limit takes effect at once.
func TestWindowChangedPeriod(t *testing.T) {
	minute := Params{Algorithm: AlgorithmFixedWindow, Count: 1, Period: 60e6, Capacity: 1}
	second := Params{Algorithm: AlgorithmFixedWindow, Count: 100, Period: 1e6, Capacity: 100}
	r, _ := decide(&minute, nil, State{}, testEpoch, 1)
	for _, a := range []Algorithm{AlgorithmFixedWindow, AlgorithmSlidingWindow} {
		minute.Algorithm, second.Algorithm = a, a
		got, _ := decide(&second, nil, r.Next, testEpoch+1000, 99)
		if !got.Allowed || got.Remaining != 0 {
			t.Errorf("%s: raised: %+v, want 99 admitted and none left", a, got.Verdict)
		}
		got, _ = decide(&second, nil, got.Next, testEpoch+60e6, 100)
		if !got.Allowed {
			t.Errorf("%s: after the old window: %+v, want all 100", a, got.Verdict)
		}
	}
}

// TestClockStepsBack checks that a step back creates no units and freezes no bucket.
func TestClockStepsBack(t *testing.T) {
	for _, a := range []Algorithm{AlgorithmTokenBucket, AlgorithmSlidingWindow, AlgorithmFixedWindow} {
		p := Params{Algorithm: a, Count: 100, Period: 60e6, Capacity: 100}
		if a == AlgorithmTokenBucket {
			p = tokenParams(t, "100/m", 100)
		}
		r, _ := decide(&p, nil, State{}, testEpoch, 100)
		back := testEpoch - 10*86400e6
		r, _ = decide(&p, nil, r.Next, back, 1)
		if r.Allowed {
			t.Errorf("%s: the step back minted: %+v", a, r.Verdict)
		}
		if r.Wait > 60_000 {
			t.Errorf("%s: the step back froze the bucket for %d ms", a, r.Wait)
		}
		if r, _ = decide(&p, nil, r.Kept, back+60e6, 100); !r.Allowed {
			t.Errorf("%s: a period after the step back: %+v, want all 100", a, r.Verdict)
		}
	}
}

func TestRefund(t *testing.T) {
	for _, a := range []Algorithm{AlgorithmTokenBucket, AlgorithmSlidingWindow, AlgorithmFixedWindow} {
		p := Params{Algorithm: a, Count: 10, Period: 60e6, Capacity: 10}
		if a == AlgorithmTokenBucket {
			p = tokenParams(t, "10/m", 10)
		}
		r, _ := decide(&p, nil, State{}, testEpoch, 4)
		s := Refund(&p, r.Next, 4, r.Window, testEpoch)
		if r, _ = decide(&p, nil, s, testEpoch, 10); !r.Allowed {
			t.Errorf("%s: after the refund %+v, want all 10", a, r.Verdict)
		}
		s = Refund(&p, Refund(&p, r.Next, 10, r.Window, testEpoch), 10, r.Window, testEpoch)
		if r, _ = decide(&p, nil, s, testEpoch, 10); !r.Allowed || r.Remaining != 0 {
			t.Errorf("%s: refunded twice: %+v, want 10 and no more", a, r.Verdict)
		}
		if a == AlgorithmTokenBucket {
			continue
		}
		next, _ := decide(&p, nil, r.Next, testEpoch+120e6, 10)
		s = Refund(&p, next.Next, 10, r.Window, testEpoch+120e6)
		if r, _ = decide(&p, nil, s, testEpoch+120e6, 1); r.Allowed {
			t.Errorf("%s: a refund for a window that has passed was credited", a)
		}
	}
}

func TestMulDiv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Int64Range(0, 1<<51).Draw(t, "x")
		w := rapid.Int64Range(1, MaxPeriod).Draw(t, "w")
		m := rapid.Int64Range(0, w).Draw(t, "m")
		quo, rem := MulDiv(x, m, w)
		want, wantRem := new(big.Int).QuoRem(new(big.Int).Mul(big.NewInt(x), big.NewInt(m)), big.NewInt(w), new(big.Int))
		if quo != want.Int64() || rem != wantRem.Int64() {
			t.Fatalf("mulDiv(%d, %d, %d) = %d, %d, want %s, %s", x, m, w, quo, rem, want, wantRem)
		}
	})
}
