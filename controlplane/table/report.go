package table

import "time"

// Report is what all proxies of a cell admitted in a window.
type Report struct {
	Cell   string
	Window int64 // the number of the window, see WindowAt
	// Shares are the units admitted of each bucket, by its name, divided by the units
	// that the limit of all cells together admits in that time.
	Shares map[string]float64
}

// WindowAt returns the number of the window that contains a time. Windows of equal
// length follow each other since the epoch, so that they are the same for all cells.
func WindowAt(at time.Time, length time.Duration) int64 {
	return int64(at.Sub(time.Unix(0, 0)) / length)
}

// WindowEnd returns when a window ends.
func WindowEnd(window int64, length time.Duration) time.Time {
	return time.Unix(0, 0).Add(time.Duration(window+1) * length)
}
