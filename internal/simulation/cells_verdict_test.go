package simulation

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/limit/bucket"
)

// cellSpan is the time for which the admitted units are compared with the limit.
const cellSpan = 10 * second

// times returns the units admitted in the ten seconds before an instant, as a multiple of
// the units that the limit admits in that time.
func (r *cellsRun) times(end int64) float64 {
	return float64(r.until(end)-r.until(end-cellSpan)) / float64(r.global.Most(cellSpan))
}

// stride is the step by which the ten seconds move: windows are examined from beginning
// to end, since a limit admits twice as much in ten seconds that lie across two.
func (r *cellsRun) stride() int64 {
	if r.global.Algorithm == bucket.AlgorithmFixedWindow {
		return cellSpan
	}
	return cellTick
}

// slack is how much the parts of a limit may add up to beyond the limit, as a part of it:
// they are whole numbers, and each is rounded up by less than one, both of a bucket and
// of its refill in each second.
func (r *cellsRun) slack() float64 {
	perCell := int64(1)
	if r.global.Algorithm == bucket.AlgorithmTokenBucket {
		perCell += cellSpan / second
	}
	return float64(perCell*int64(len(r.cells))) / float64(r.global.Most(cellSpan))
}

// overAdmission is the result of a run for the limit that cells share.
type overAdmission struct {
	most, last float64
	above      int64 // the time above the limit
}

func (r *cellsRun) overAdmission() (o overAdmission) {
	for end := r.stride(); end <= r.now; end += r.stride() {
		o.last = r.times(end)
		o.most = max(o.most, o.last)
		if o.last > 1+r.slack() {
			o.above += r.stride()
		}
	}
	return o
}

// check checks the guarantees of a run.
func (s *cellScenario) check(t *testing.T, r *cellsRun) {
	t.Helper()
	o, slack := r.overAdmission(), r.slack()
	if o.most > s.bound+slack {
		t.Errorf("%.4f times the limit was admitted, the bound is %.4f and %.4f for rounding", o.most, s.bound, slack)
	}
	if o.last > s.after+slack || o.last < 0.98*s.after {
		t.Errorf("in the end it is %.4f times the limit, want %.4f", o.last, s.after)
	}
	// A bound far above all runs would prove nothing. Units taken of a window count until
	// its end, so that all parts that the cells have in it add up.
	if (s.lasts || r.global.Algorithm == bucket.AlgorithmFixedWindow) && o.most < 0.9*s.bound {
		t.Errorf("it was never more than %.4f times the limit, and the bound is %.4f", o.most, s.bound)
	}
}

var headCells = []string{"what happens", "at most, times the limit", "token bucket: most in 10 s", "above 1 for", "in the end", "window of 10 s: most", "above 1 for", "in the end"}

// row returns the row of the runs of a scenario in the table.
func (s *cellScenario) row(bucket, window *cellsRun) []string {
	row := []string{s.name, fmt.Sprintf("%.3f", s.bound)}
	for _, r := range []*cellsRun{bucket, window} {
		o := r.overAdmission()
		above := "-"
		if o.above > 0 {
			above = fmt.Sprintf("%d s", (o.above+second/2)/second)
		}
		row = append(row, fmt.Sprintf("%.3f", o.most), above, fmt.Sprintf("%.3f", o.last))
	}
	return row
}
