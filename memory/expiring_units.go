package memory

import (
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// unitsBucket is a bucket with expiring units. In the budget each of its entries counts
// as a bucket.
type unitsBucket struct {
	bucket.UnitLog
	params  bucket.Params // of the limit that wrote it last
	entries int           // that the budget counts
}

// takeUnits takes units for a call from a bucket, none for 0, by the state of the
// decision.
func (sh *shard) takeUnits(u *unitsBucket, it *limit.Item, s *bucket.State, call limit.Call, now, units int64) {
	u.params = it.Limit.Params
	by := ""
	if u.params.Algorithm == bucket.AlgorithmConcurrency {
		by = holder(call.RecordKey, now)
	} else if sh.budget.left() == 0 {
		u.Compact(now)
	}
	u.Take(&u.params, now, units, s, by)
	sh.account(string(it.Name), u)
}

// giveUnits returns units to a bucket at now, see limit.UnitLog.Release, and reports
// whether the bucket took any.
func (sh *shard) giveUnits(now int64, name []byte, units, window int64, holder string) bool {
	u := sh.units[string(name)]
	if u == nil {
		return false
	}
	if u.params.Algorithm != bucket.AlgorithmConcurrency {
		holder = ""
	}
	given := u.Release(now, units, window, holder)
	sh.account(string(name), u)
	return given > 0
}

// account updates the budget with the number of a bucket's entries, and deletes the
// bucket if it is empty.
func (sh *shard) account(name string, u *unitsBucket) {
	n := u.Entries()
	sh.budget.live.Add(int64(n - u.entries))
	u.entries = n
	if n == 0 {
		delete(sh.units, name)
		return
	}
	sh.units[name] = u
}

// sweepUnits looks at some buckets and deletes those whose units have all expired. It
// reports whether there were any.
func (sh *shard) sweepUnits(steps int, now int64) (freed bool) {
	for name, u := range sh.units { // in random order
		if steps--; steps < 0 {
			break
		}
		if u.Expires(&u.params) <= now {
			sh.removeUnits(name, u)
			freed = true
		}
	}
	return freed
}

func (sh *shard) removeUnits(name string, u *unitsBucket) {
	sh.budget.live.Add(-int64(u.entries))
	delete(sh.units, name)
}
