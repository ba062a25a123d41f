package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Spread is the median of some rounds, and their range.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spread returns the spread of values; without values it is zero.
func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (median + sorted[middle-1]) / 2
	}
	return Spread{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}
}

// once is the spread of a value that is measured once.
func once(value float64) Spread { return Spread{Median: value, Min: value, Max: value} }

// Unit is the unit of a figure.
type Unit string

// The units. A ratio is of Limitgate to its yardstick.
const (
	Ratio        Unit = "x"
	Microseconds Unit = "us"
	Milliseconds Unit = "ms"
	Bytes        Unit = "B"
	KiB          Unit = "KiB"
	MiB          Unit = "MiB"
	PerSecond    Unit = "/s"
	Percent      Unit = "%"
	Count        Unit = ""
)

// Format formats a value with its unit, with three significant digits.
func (u Unit) Format(value float64) string {
	var text string
	switch size := math.Abs(value); {
	case size >= 100 || u == Count && value == math.Trunc(value):
		text = grouped(math.Round(value))
	case size >= 10:
		text = fmt.Sprintf("%.1f", value)
	case size >= 0.1 || value == 0:
		text = fmt.Sprintf("%.2f", value)
	default:
		text = fmt.Sprintf("%.3f", value)
	}
	switch u {
	case Count, Ratio, PerSecond, Percent:
		return text + string(u)
	default:
		return text + " " + string(u)
	}
}

// grouped formats an integer with commas between thousands.
func grouped(value float64) string {
	text := fmt.Sprintf("%.0f", math.Abs(value))
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if value < 0 {
		return "-" + text
	}
	return text
}

// Bound is the side of its value on which a goal lies.
type Bound string

// The bounds.
const (
	AtLeast Bound = ">="
	AtMost  Bound = "<="
	Exactly Bound = "="
	// Within bounds the distance from zero.
	Within Bound = "±"
)

// Goal is the desired value of a figure.
type Goal struct {
	Bound Bound   `json:"bound"`
	Value float64 `json:"value"`
}

func atLeast(value float64) *Goal { return &Goal{AtLeast, value} }
func atMost(value float64) *Goal  { return &Goal{AtMost, value} }
func exactly(value float64) *Goal { return &Goal{Exactly, value} }
func within(value float64) *Goal  { return &Goal{Within, value} }

// meets reports whether a value meets the goal.
func (g *Goal) meets(value float64) bool {
	switch g.Bound {
	case AtLeast:
		return value >= g.Value
	case AtMost:
		return value <= g.Value
	case Within:
		return math.Abs(value) <= g.Value
	default:
		return cmp.Compare(value, g.Value) == 0
	}
}

// Figure is one result.
type Figure struct {
	Name  string `json:"name"`
	Unit  Unit   `json:"unit"`
	Value Spread `json:"value"`
	Goal  *Goal  `json:"goal,omitempty"`
	// Verdict is met or missed, for a figure with a goal.
	Verdict string `json:"verdict,omitempty"`
}

// The verdicts.
const (
	met    = "met"
	missed = "missed"
)

// judge sets the verdict of a figure: its median has to meet the goal.
func (f Figure) judge() Figure {
	switch {
	case f.Goal == nil:
	case f.Goal.meets(f.Value.Median):
		f.Verdict = met
	default:
		f.Verdict = missed
	}
	return f
}

// goalText formats the goal of a figure.
func (f *Figure) goalText() string {
	if f.Goal == nil {
		return ""
	}
	return string(f.Goal.Bound) + " " + f.Unit.Format(f.Goal.Value)
}
