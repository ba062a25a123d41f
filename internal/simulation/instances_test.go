package simulation

import "math"

// ceiling is how many times too much may be admitted at most when whoever counts
// the instances is wrong.
const ceiling = 3

// instances returns how many instances share the limits while the store is out:
// what the source counts, but never so few that the shares of what were last of them
// while the store answered come to more than ceiling times the limit.
func instances(counted, last int) int {
	return max(counted, int(math.Ceil(float64(last)/ceiling)))
}
