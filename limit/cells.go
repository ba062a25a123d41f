package limit

import (
	"cmp"
	"slices"

	"github.com/limitgate/limitgate/limit/bucket"
)

// The accepted range of cells: within it no product of a limit and a weight overflows.
const (
	MaxCells      = 1000
	MaxCellWeight = 1 << 20
)

// Cells are the cells that share the limits. Each of them enforces its own part of every
// limit. Cells is not safe for concurrent use.
type Cells struct {
	// Weights are the weights of all cells, from 1 to MaxCellWeight, in an order on which
	// all cells agree. There are at most MaxCells.
	Weights []int64
	// Own is the index of this cell.
	Own int

	known map[int64][2]int64 // computed shares: this cell's and the smallest
}

// Share returns this cell's part of n units, from 1 to MaxCapacity. The parts of all
// cells add up to n exactly, unless there are more cells than units: each cell has at
// least one.
func (c *Cells) Share(n int64) int64 {
	own, _ := c.shares(n)
	return own
}

// shares returns this cell's part of n units, and the smallest one of all.
func (c *Cells) shares(n int64) (own, smallest int64) {
	known, ok := c.known[n]
	if !ok {
		parts := DivideByWeight(n, c.Weights)
		known = [2]int64{parts[c.Own], slices.Min(parts)}
		if c.known == nil {
			c.known = map[int64][2]int64{}
		}
		c.known[n] = known
	}
	return known[0], known[1]
}

// DivideByWeight divides n units by weights, by the method of the largest remainder: the
// parts are whole numbers, add up to n, and differ from the exact parts by less than one.
// No part is below one: parts that would be are raised to one, at the expense of the
// others. If n is less than the number of parts, the parts add up to more than n.
func DivideByWeight(n int64, weights []int64) []int64 {
	parts := make([]int64, len(weights))
	var rest []int // those of which the part is not decided
	for i := range weights {
		rest = append(rest, i)
	}
	for len(rest) > 0 {
		divide(max(n, 0), weights, rest, parts)
		i := slices.IndexFunc(rest, func(i int) bool { return parts[i] < 1 })
		if i < 0 {
			break
		}
		rest = slices.DeleteFunc(rest, func(i int) bool {
			if parts[i] < 1 {
				parts[i] = 1
				n--
				return true
			}
			return false
		})
	}
	return parts
}

// divide divides n units among some of the parts. Among equal remainders the order of
// some decides.
func divide(n int64, weights []int64, some []int, parts []int64) {
	total := int64(0)
	for _, i := range some {
		total += weights[i]
	}
	left := n
	remainders := make(map[int]int64, len(some))
	for _, i := range some {
		parts[i], remainders[i] = bucket.MulDiv(n, weights[i], total)
		left -= parts[i]
	}
	order := slices.Clone(some)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for _, i := range order[:left] {
		parts[i]++
	}
}

// divide replaces a compiled limit by this cell's part of it. The part admits at least
// the largest cost that the limit declares, if a bucket of that size can be counted
// exactly.
func (c *compiler) divide(l *Limit) {
	if c.opts.Cells == nil || l.Action != ActionLimit {
		return
	}
	cells, least := c.opts.Cells, max(1, l.FixedCost, l.MaxCost)
	share := func(n, least int64) int64 {
		own, smallest := cells.shares(n)
		l.RoundedUp = l.RoundedUp || smallest < least || n < int64(len(cells.Weights))
		return max(own, least)
	}
	part := l.Rate
	var capacity int64
	if l.Params.Algorithm == bucket.AlgorithmTokenBucket { // only its capacity has to hold a cost
		capacity = share(l.Params.Capacity, least)
		part.Count = share(part.Count, 1)
	} else {
		part.Count = share(part.Count, least)
		capacity = part.Count
	}
	params, err := part.Params(l.Params.Algorithm, capacity)
	if err != nil { // the rate was rounded down: use the largest bucket that it fills in time
		params.Capacity = bucket.MulDivAtMost(bucket.MaxFullTime, params.Count, params.Period, bucket.MaxCapacity)
	}
	if l.Params.Algorithm == bucket.AlgorithmTokenBucket && l.CountsAddresses() {
		// The key of the part must not live longer than that of the whole limit would.
		params.Capacity = max(1, min(params.Capacity, bucket.MulDivAtMost(l.Params.FullTime(), params.Count, params.Period, bucket.MaxCapacity)))
	}
	l.Rate, l.Params = part, params
}

// Divided reports whether l is one cell's part of a limit.
func (l *Limit) Divided() bool { return l.Undivided.Count > 0 && l.Params != l.Undivided }
