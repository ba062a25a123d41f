package catalog

import (
	"math/rand/v2"
	"time"
)

const (
	// settleTime is how long after a new item a digest that differs is no evidence:
	// other items may still be on their way. If items arrive without a pause, it
	// becomes evidence after settleMost.
	settleTime = 3 * time.Second
	settleMost = time.Minute
	// differingMost is how many digests in a row must differ before the table is read:
	// the first one may have overtaken an item.
	differingMost = 2
	// readPause is the least time between two readings of the table: forged messages
	// cannot cause more.
	readPause = 2 * time.Second
	// futilePause is the pause after a reading that changed nothing and did not make
	// the digests equal. It doubles with each such reading, up to futileMost.
	futilePause = 10 * time.Second
	futileMost  = 90 * time.Second
	// A silence begins when missedDigests are overdue, by the interval that the latest
	// digest named, but not before silentLeast and not after silentMost.
	missedDigests = 3
	silentLeast   = 30 * time.Second
	silentMost    = 90 * time.Second
	// silentSpread spreads the first readings of a fleet that stops receiving digests
	// at one time. silentPause is the pause between the next readings, randomly from
	// half of it to three halves.
	silentSpread = 15 * time.Second
	silentPause  = 40 * time.Second
	// readEvery is how often the table is read without a reason, so that forged digests
	// cannot hide a change for ever. The interval is random, from half of it to three
	// halves.
	readEvery = time.Hour
)

// rereading decides when a Syncer reads the table again. It is not safe for concurrent
// use.
type rereading struct {
	confirmed time.Time     // when the table was read or a digest was equal; zero for never
	heard     time.Time     // when the latest digest arrived, or the Syncer was created
	every     time.Duration // the interval of digests, 0 before the first
	silent    bool
	missed    bool // messages were missed
	differing int  // digests in a row that differed
	futile    int  // readings in a row that changed nothing and were followed by differing digests
	errors    int  // readings in a row that failed
	empty     bool // the latest reading found no limits
	vain      bool // the latest reading changed nothing, and no digest was equal since
	notBefore time.Time
	hourly    time.Time // when the table is read without another reason
	reverted  time.Time // when the table reverted items that messages named
}

func newRereading(now time.Time) rereading { return rereading{heard: now} }

// recordDigest records a digest: whether it equals that of the catalog, the interval
// that it named, and whether items are still arriving. It reports whether a reading of
// the table was futile, for the first one in a row.
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

// silence returns how long to wait for a digest before a silence begins.
func (r *rereading) silence() time.Duration {
	if r.every <= 0 {
		return silentMost
	}
	return min(max(missedDigests*min(r.every, silentMost), silentLeast), silentMost)
}

// recordSilence records that no digest has arrived for too long, and reports whether a
// silence begins.
func (r *rereading) recordSilence(now time.Time) bool {
	if r.silent || now.Sub(r.heard) < r.silence() {
		return false
	}
	r.silent = true
	r.notBefore = now.Add(rand.N(silentSpread))
	return true
}

// due reports whether to read the table now. Missing is when to read it because of
// missing items, zero for never.
func (r *rereading) due(now, missing time.Time) bool {
	if now.Before(r.notBefore) {
		return false
	}
	return r.confirmed.IsZero() || r.missed || r.silent || r.errors > 0 || r.differing >= differingMost ||
		!missing.IsZero() && !now.Before(missing) || !now.Before(r.hourly)
}

// distrustTime is how long messages are distrusted after the table reverted items that
// messages named.
const distrustTime = 2 * time.Minute

// distrust records that the table reverted items that messages named.
func (r *rereading) distrust(now time.Time) { r.reverted = now }

// distrusts reports whether messages are distrusted.
func (r *rereading) distrusts(now time.Time) bool {
	return !r.reverted.IsZero() && now.Sub(r.reverted) < distrustTime
}

// begin records that a reading of the table begins: it does not include changes missed
// from now on.
func (r *rereading) begin() { r.missed = false }

// succeed records a successful reading of the table, and whether it changed the
// catalog.
func (r *rereading) succeed(now time.Time, changed bool) {
	pause := readPause
	if r.silent {
		pause = silentPause
	}
	r.confirmed, r.differing, r.errors, r.empty, r.vain = now, 0, 0, false, !changed
	r.notBefore, r.hourly = now.Add(jitter(pause)), now.Add(jitter(readEvery))
}

// fail records that the table could not be read, or is empty: an empty table is read
// less often.
func (r *rereading) fail(now time.Time, empty bool) {
	pause := min(pauseLeast<<min(r.errors, 10), pauseMost)
	if empty {
		pause = silentPause
	}
	r.notBefore, r.empty = now.Add(jitter(pause)), empty
	r.errors++
}

// refill records a message about limits of the table: if it was empty, it is read soon.
func (r *rereading) refill(now time.Time) {
	if r.empty {
		r.notBefore, r.empty = now.Add(jitter(readPause)), false
	}
}
