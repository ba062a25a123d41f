package catalog

import (
	"math/rand/v2"
	"time"
)

const (
	// settleTime is how long after a new item a digest that differs is no evidence: other
	// items may still be on their way. While items come all the time it becomes evidence
	// after settleMost.
	settleTime = 3 * time.Second
	settleMost = time.Minute
	// differingMost is how many digests in a row may differ: the first one may have overtaken
	// an item.
	differingMost = 2
	// readPause is the least time between two readings of the table: forged messages cannot
	// cause more.
	readPause = 2 * time.Second
	// futilePause is the pause after a reading that changed nothing and did not make the digests
	// agree, doubled with each up to futileMost.
	futilePause = 10 * time.Second
	futileMost  = 90 * time.Second
	// A proxy is silent when missedDigests have not come, by the interval that the latest one
	// named, within the bounds.
	missedDigests = 3
	silentLeast   = 30 * time.Second
	silentMost    = 90 * time.Second
	// silentSpread spreads the first readings of a fleet that falls silent at one moment, and
	// silentPause is the pause between the next ones: half of it at least, and three halves at
	// most.
	silentSpread = 15 * time.Second
	silentPause  = 40 * time.Second
	// readEvery is how often the table is read without a reason, so that forged digests
	// cannot hide a change for ever: half of it at least, and three halves at most.
	readEvery = time.Hour
)

// rereading decides when a follower reads the table again. It is not safe for concurrent use.
type rereading struct {
	confirmed time.Time     // when the table was read, or a digest was the same; zero for never
	heard     time.Time     // when the latest digest came, or the follower began
	every     time.Duration // between digests, 0 before the first
	silent    bool
	missed    bool // messages were missed
	differing int  // digests in a row that differed
	futile    int  // readings in a row that changed nothing, and digests differed again
	errors    int  // readings in a row that failed
	vain      bool // the latest reading changed nothing, and no digest was the same since
	notBefore time.Time
	hourly    time.Time // when the table is read without a reason
	reverted  time.Time // when the table took back what messages named
}

func newRereading(now time.Time) rereading { return rereading{heard: now} }

// recordDigest notes a digest, whether it is that of the catalog, the interval that it named, and
// whether items are still arriving. It reports whether a reading of the table was futile.
func (r *rereading) recordDigest(now time.Time, same bool, every time.Duration, arriving bool) (futile bool) {
	r.heard, r.every, r.silent = now, every, false
	switch {
	case same:
		r.confirmed, r.differing, r.futile, r.vain = now, 0, 0, false
	case arriving && now.Sub(r.confirmed) < settleMost && !r.distrusts(now):
	default:
		r.differing++
		if r.differing == differingMost && r.vain {
			r.futile++
			r.notBefore = now.Add(min(futilePause<<min(r.futile-1, 8), futileMost))
			return r.futile == 1
		}
	}
	return false
}

// silence returns how long a follower waits for a digest before it is silent.
func (r *rereading) silence() time.Duration {
	if r.every <= 0 {
		return silentMost
	}
	return min(max(missedDigests*min(r.every, silentMost), silentLeast), silentMost)
}

// recordSilence notes that no digest has come for too long, and reports whether that is new.
func (r *rereading) recordSilence(now time.Time) bool {
	if r.silent || now.Sub(r.heard) < r.silence() {
		return false
	}
	r.silent = true
	r.notBefore = now.Add(rand.N(silentSpread))
	return true
}

// due reports whether the table is to be read now. Missing is when it is because of missing
// items, zero for never.
func (r *rereading) due(now, missing time.Time) bool {
	if now.Before(r.notBefore) {
		return false
	}
	return r.confirmed.IsZero() || r.missed || r.silent || r.errors > 0 || r.differing >= differingMost ||
		!missing.IsZero() && !now.Before(missing) || !now.Before(r.hourly)
}

// distrustTime is how long after the table took back what messages named they are not trusted.
const distrustTime = 2 * time.Minute

// distrust notes that the table took back what messages named.
func (r *rereading) distrust(now time.Time) { r.reverted = now }

// distrusts reports whether messages are not trusted.
func (r *rereading) distrusts(now time.Time) bool {
	return !r.reverted.IsZero() && now.Sub(r.reverted) < distrustTime
}

// begin notes that a reading of the table begins: what is missed from now on is not in it.
func (r *rereading) begin() { r.missed = false }

// succeed notes that the table was read, and whether that changed anything.
func (r *rereading) succeed(now time.Time, changed bool) {
	pause := readPause
	if r.silent {
		pause = silentPause
	}
	r.confirmed, r.differing, r.errors, r.vain = now, 0, 0, !changed
	r.notBefore, r.hourly = now.Add(jitter(pause)), now.Add(jitter(readEvery))
}

// fail notes that the table could not be read, or is empty: then it is read seldom.
func (r *rereading) fail(now time.Time, empty bool) {
	pause := min(pauseLeast<<min(r.errors, 10), pauseMost)
	if empty {
		pause = silentPause
	}
	r.notBefore = now.Add(jitter(pause))
	r.errors++
}
