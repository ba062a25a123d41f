package bench

import "testing"

func TestSpreadIsTheMedianAndTheRange(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   Spread
	}{
		"none":  {nil, Spread{}},
		"one":   {[]float64{3}, Spread{3, 3, 3}},
		"odd":   {[]float64{5, 1, 3}, Spread{3, 1, 5}},
		"even":  {[]float64{4, 1, 2, 8}, Spread{3, 1, 8}},
		"equal": {[]float64{2, 2, 2, 2, 2}, Spread{2, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spread(test.values); got != test.want {
				t.Errorf("spread = %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestSpreadLeavesTheValuesInTheirOrder(t *testing.T) {
	values := []float64{3, 1, 2}
	spread(values)
	if values[0] != 3 || values[1] != 1 || values[2] != 2 {
		t.Errorf("values = %v", values)
	}
}

func TestUnitsAreWrittenWithTheDigitsThatCount(t *testing.T) {
	for _, test := range []struct {
		unit  Unit
		value float64
		want  string
	}{
		{Ratio, 1.5, "1.50x"},
		{Ratio, 12.34, "12.3x"},
		{Microseconds, 0.0714, "0.071 us"},
		{Microseconds, 1836, "1,836 us"},
		{Microseconds, -2818.4, "-2,818 us"},
		{Milliseconds, 0, "0.00 ms"},
		{Count, 1234567, "1,234,567"},
		{Count, 999, "999"},
		{PerSecond, 0.99, "0.99/s"},
		{Bytes, 136.2, "136 B"},
	} {
		if got := test.unit.Format(test.value); got != test.want {
			t.Errorf("%v in %q = %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}

func TestGoalsAreMetAtTheirBound(t *testing.T) {
	for _, test := range []struct {
		goal             *Goal
		below, at, above string
	}{
		{atLeast(2), missed, met, met},
		{atMost(2), met, met, missed},
		{exactly(2), missed, met, missed},
		{within(2), met, met, missed},
		{nil, "", "", ""},
	} {
		for value, want := range map[float64]string{1.9: test.below, 2: test.at, 2.1: test.above} {
			f := Figure{Value: Spread{Median: value, Min: 0, Max: 9}, Goal: test.goal}.judge()
			if f.Verdict != want {
				t.Errorf("%v with goal %+v is %q, want %q", value, test.goal, f.Verdict, want)
			}
		}
	}
}

func TestGoalAroundZeroIsMissedOnBothSides(t *testing.T) {
	f := Figure{Unit: Percent, Value: once(-2.1), Goal: within(2)}.judge()
	if f.Verdict != missed || f.goalText() != "± 2.00%" {
		t.Errorf("-2.1 with goal %s is %s", f.goalText(), f.Verdict)
	}
}
