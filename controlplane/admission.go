package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/run"
)

const (
	// admissionEvery is how often the reports of cells are read.
	admissionEvery = 10 * time.Second
	// admissionLate is how long after the end of a window its measurement waits for the
	// reports of all cells.
	admissionLate = 30 * time.Second
	// alarmAt is the over-admission from which the level is LevelAlarm, and pageAt that
	// from which it is LevelPage. The level is also LevelPage after pageAfter above
	// alarmAt.
	alarmAt   = 1.5
	pageAt    = 3
	pageAfter = 10 * time.Minute
	// maxShare bounds the share of a limit that one cell can have admitted.
	maxShare = 1e6
)

// Level is the urgency of an over-admission.
type Level int

// The levels.
const (
	LevelCalm Level = iota
	LevelAlarm
	LevelPage
)

// String returns the level's word.
func (l Level) String() string { return [...]string{"calm", "alarm", "page"}[l] }

// Reports reads what each cell has admitted.
type Reports interface {
	Reports(ctx context.Context) ([]table.Report, error)
}

// OverAdmission is what all cells together admitted in a window, as shares of limits: 1
// is what a limit admits.
type OverAdmission struct {
	Window   int64
	Cells    int // cells that have reported
	Buckets  int
	Max, P99 float64
	Worst    string // the bucket of Max
	Level    Level
}

// Admission measures by how much cells together admit more than limits. Run does the
// work.
type Admission struct {
	Reports Reports
	Window  time.Duration // the length of a window
	Log     *slog.Logger
	// Measured is called with each window, unless it is nil.
	Measured func(OverAdmission)

	mu     sync.Mutex // guards the fields below
	latest OverAdmission
	above  time.Time // since when Max is above alarmAt, zero while it is not
}

// Run measures until ctx ends.
func (a *Admission) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := a.Update(ctx, time.Now()); err != nil && ctx.Err() == nil {
			a.Log.Error("failed to read admission reports of cells", "error", err)
		}
		run.Sleep(ctx, admissionEvery)
	}
	return nil
}

// Update measures the last window, once all cells have reported it or admissionLate has
// passed.
func (a *Admission) Update(ctx context.Context, now time.Time) error {
	reports, err := a.Reports.Reports(ctx)
	if err != nil {
		return fmt.Errorf("measure admission: %w", err)
	}
	// A window that has not ended was reported by a clock that is ahead.
	ended := table.WindowAt(now, a.Window)
	reports = slices.DeleteFunc(slices.Clone(reports), func(r table.Report) bool { return r.Window >= ended })
	window := int64(0)
	for _, r := range reports {
		window = max(window, r.Window)
	}
	late := now.Sub(table.WindowEnd(window, a.Window)) >= admissionLate
	current := slices.DeleteFunc(slices.Clone(reports), func(r table.Report) bool { return r.Window != window })
	a.mu.Lock()
	defer a.mu.Unlock()
	if window <= a.latest.Window || len(current) < len(reports) && !late {
		return nil
	}
	a.measure(window, current, now)
	return nil
}

// measure adds up the reports of a window. The caller holds mu.
func (a *Admission) measure(window int64, reports []table.Report, now time.Time) {
	o := Sum(window, reports)
	switch {
	case o.Max < alarmAt:
		a.above = time.Time{}
	case a.above.IsZero():
		a.above = now
	}
	switch {
	case o.Max >= pageAt, !a.above.IsZero() && now.Sub(a.above) >= pageAfter:
		o.Level = LevelPage
	case o.Max >= alarmAt:
		o.Level = LevelAlarm
	}
	if o.Level > LevelCalm || a.latest.Level > LevelCalm {
		a.Log.Warn("cells together admit more than a limit", "level", o.Level, "bucket", o.Worst, "times", o.Max, "p99", o.P99, "cells", o.Cells)
	}
	a.latest = o
	if a.Measured != nil {
		a.Measured(o)
	}
}

// Sum adds up what cells admitted of each bucket.
func Sum(window int64, reports []table.Report) OverAdmission {
	o := OverAdmission{Window: window, Cells: len(reports)}
	sums := map[string]float64{}
	for _, r := range reports {
		for name, share := range r.Shares {
			if share >= 0 && share <= maxShare { // no proxy measures other values
				sums[name] += share
			}
		}
	}
	if o.Buckets = len(sums); o.Buckets == 0 {
		return o
	}
	order := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[a], sums[b]), cmp.Compare(a, b)) })
	o.Worst = order[len(order)-1]
	o.Max, o.P99 = sums[o.Worst], sums[order[min(len(order)-1, len(order)*99/100)]]
	return o
}

// admissionOld is the age from which Latest no longer returns a measurement.
const admissionOld = 5 * time.Minute

// Latest returns the latest measurement, or a zero one if that is older than
// admissionOld.
func (a *Admission) Latest(now time.Time) OverAdmission {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(table.WindowEnd(a.latest.Window, a.Window)) >= admissionOld {
		return OverAdmission{}
	}
	return a.latest
}
