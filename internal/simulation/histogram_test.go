package simulation

import (
	"fmt"
	"slices"
	"strings"
)

// binTime is the width of a bin of a histogram, in microseconds.
const binTime = 10_000

// histogram counts events in each bin of time.
type histogram []int

// add counts an event at an instant.
func (h *histogram) add(at int64) { h.addMany(at, 1) }

// addMany counts n events.
func (h *histogram) addMany(at int64, n int) {
	bin := int(at / binTime)
	for len(*h) <= bin {
		*h = append(*h, 0)
	}
	(*h)[bin] += n
}

// between returns the count in the bins from one instant to another.
func (h histogram) between(from, to int64) int {
	clip := func(at int64) int64 { return min(max(at/binTime, 0), int64(len(h))) }
	return h[clip(from):clip(to)].total()
}

// trim returns the bins from the first that is not empty to the last, and the number of
// bins before them.
func (h histogram) trim() (spread histogram, before int) {
	some := func(n int) bool { return n > 0 }
	first := slices.IndexFunc(h, some)
	if first < 0 {
		return nil, 0
	}
	last := len(h)
	for h[last-1] == 0 {
		last--
	}
	return h[first:last], first
}

// shape returns the fullest bin, and the mean of those from the first that is not
// empty to the last.
func (h histogram) shape() (most int, mean float64) {
	spread, _ := h.trim()
	if len(spread) == 0 {
		return 0, 0
	}
	return slices.Max(spread), float64(h.total()) / float64(len(spread))
}

func (h histogram) total() int {
	sum := 0
	for _, n := range h {
		sum += n
	}
	return sum
}

const (
	barRows  = 16
	barWidth = 50
)

// bars draws the spread as text: each row is the fullest bin of several, since that is
// the load that a server has to bear.
func (h histogram) bars() string {
	spread, before := h.trim()
	most, _ := h.shape()
	step := max(1, (len(spread)+barRows-1)/barRows)
	var text strings.Builder
	for first := 0; first < len(spread); first += step {
		row := slices.Max(spread[first:min(first+step, len(spread))])
		bar := strings.Repeat("#", (row*barWidth+most-1)/most)
		fmt.Fprintf(&text, "%8s |%-*s %d\n", seconds(int64(before+first)*binTime), barWidth, bar, row)
	}
	return text.String()
}

// seconds formats microseconds as seconds.
func seconds(micros int64) string { return fmt.Sprintf("%.2f s", float64(micros)/1e6) }
