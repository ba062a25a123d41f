package simulation

import (
	"fmt"
	"testing"
)

// shareInBin is for how many of the clients there are units in 10 ms: as many as should
// retry in each bin.
const shareInBin = crowd * binTime / float64(crowdFull/1000)

// crowds are clients that wait in different ways.
var crowds = []clients{
	{name: "retry_after", wait: obedient, check: checkObedient},
	{name: "exponential backoff", wait: doubling, check: checkDoubling},
	{name: "exponential backoff with full jitter", wait: scattered, check: checkScattered},
}

// clients are a crowd with a way of waiting.
type clients struct {
	name  string
	wait  patience
	check func(*testing.T, *crowdResult)
}

// mostCrowded bounds the number of retries in the fullest bin, as a multiple of the units
// in a bin.
const mostCrowded = 3

func checkObedient(t *testing.T, r *crowdResult) {
	if most, _ := r.first.shape(); float64(most) > mostCrowded*shareInBin {
		t.Errorf("%d first retries in 10 ms, and units for %.1f", most, shareInBin)
	}
	// No unit is left unused for lack of requests.
	if full := crowdFull.Microseconds(); r.last < full-second || r.last > full*101/100 {
		t.Errorf("all were admitted after %s, want little more than %s", seconds(r.last), seconds(full))
	}
}

// checkDoubling asserts that clients with equal waits retry together, so that the bound
// of the others proves something.
func checkDoubling(t *testing.T, r *crowdResult) {
	if most, _ := r.first.shape(); float64(most) <= mostCrowded*shareInBin {
		t.Errorf("only %d first retries in 10 ms", most)
	}
	if full := crowdFull.Microseconds(); r.last < full*5/4 { // units are unused between two of their waves
		t.Errorf("all were admitted after %s", seconds(r.last))
	}
}

// checkScattered asserts the same of clients that ignore retry_after.
func checkScattered(t *testing.T, r *crowdResult) {
	checkDoubling(t, r)
	if r.elapsed > 2*backoffFirst.Microseconds() {
		t.Errorf("their first retries take %s", seconds(r.elapsed))
	}
}

var headCrowd = []string{
	"clients with", "first retries within", "most in 10 ms", "of what there are units for",
	"admitted then", "requests until all are", "that takes",
}

// row returns the row of the clients in the table.
func (c *clients) row(r *crowdResult) []string {
	most, _ := r.first.shape()
	return []string{
		c.name, seconds(r.elapsed), fmt.Sprint(most), fmt.Sprintf("%.1f times", float64(most)/shareInBin),
		fmt.Sprintf("%.1f %%", 100*float64(r.admitted)/crowd), fmt.Sprint(r.requests), seconds(r.last),
	}
}
