package reference

import "slices"

// windowCount is the number of units taken in one window.
type windowCount struct {
	start, end, units int64
	// era is the number of the window's period.
	era int
}

// windowCounts are the units taken in each window, the latest last. A change of the
// period begins a new era.
type windowCounts struct {
	era    int
	counts []windowCount
}

// in returns the count of a window of the present era, or nil.
func (w *windowCounts) in(start int64) *windowCount {
	for i := range w.counts {
		if c := &w.counts[i]; c.era == w.era && c.start == start {
			return c
		}
	}
	return nil
}

// add takes units in the window of the period that contains now. Windows that count no
// more, in any algorithm, are dropped.
func (w *windowCounts) add(now, units int64, p period) mark {
	w.counts = slices.DeleteFunc(w.counts, func(c windowCount) bool { return now >= c.end+(c.end-c.start) })
	start, end := p.window(now)
	c := w.in(start)
	if c == nil {
		w.counts = append(w.counts, windowCount{start: start, end: end, era: w.era})
		c = w.in(start)
	}
	c.units += units
	return mark{at: now, start: start, era: w.era}
}

// remove returns units to a window, down to none taken.
func (w *windowCounts) remove(units, start int64) {
	if c := w.in(start); c != nil {
		c.units = max(0, c.units-units)
	}
}

// changePeriod begins a new era. Units of the windows that run at the time go on counting
// until those windows end.
//
// Not documented: the units that are taken after the change count in windows of the new
// period, beside those of the old window.
func (w *windowCounts) changePeriod(now int64) {
	w.counts = slices.DeleteFunc(w.counts, func(c windowCount) bool { return c.end <= now })
	w.era++
}

func (w *windowCounts) clone() windowCounts {
	return windowCounts{w.era, slices.Clone(w.counts)}
}
