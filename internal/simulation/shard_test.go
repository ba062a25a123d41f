package simulation

import (
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// health is the state of a shard.
type health uint8

const (
	well   health = iota
	dark          // calls do not reach it any more, and nothing comes back
	killed        // no listener: calls are refused at once
)

// shard is a simulated primary, and its replica, which lags behind. Buckets are decided
// by the maths of package limit. There are as many as the scenario has tenants.
type shard struct {
	health  health
	buckets map[string]bucket.State
	// written are the states that writes of the last lag have replaced.
	written []write
}

type write struct {
	at   int64
	name string
	was  bucket.State
}

// lag is the time before a takeover whose writes are lost.
const lag = 50_000

func newShard() *shard { return &shard{buckets: map[string]bucket.State{}} }

// take decides a check at now, and grants the wanted lease units.
func (s *shard) take(it *limit.Item, epoch, now int64) {
	state := s.buckets[string(it.Name)]
	was := state
	it.Verdict, _, _ = bucket.Decide(&it.Limit.Params, nil, &state, epoch+now, it.Cost)
	it.Source, it.LeaseGranted = limit.SourceStore, 0
	if !it.Allowed {
		it.State, it.At = state, epoch+now
		return
	}
	if more := min(it.LeaseWanted, it.Remaining/it.Cost); more > 0 {
		it.LeaseGranted = more
		it.Verdict, _, _ = bucket.Decide(&it.Limit.Params, nil, &state, epoch+now, more*it.Cost)
	}
	s.write(it, was, state, now)
}

// refund returns units.
func (s *shard) refund(it *limit.Item, epoch, now int64) {
	was := s.buckets[string(it.Name)]
	s.write(it, was, bucket.Refund(&it.Limit.Params, was, it.Cost, it.Window, epoch+now), now)
}

func (s *shard) write(it *limit.Item, was, is bucket.State, now int64) {
	name := string(it.Name)
	s.buckets[name] = is
	s.written = append(s.written, write{now, name, was})
	if old := len(s.written) / 2; s.written[old].at < now-lag {
		s.written = append(s.written[:0], s.written[old:]...)
	}
}

// itemOf returns the item of a request of one unit.
func itemOf(set *limit.Set, tenant string) limit.Item {
	var b limit.Buffer
	set.Resolve(&limit.Request{Tenant: tenant, Cost: 1}, nil, 0, &b)
	return b.Items[0]
}

// failOver makes the replica take over for a primary that died at an instant.
func (s *shard) failOver(died int64) {
	for i := len(s.written) - 1; i >= 0 && s.written[i].at >= died-lag; i-- {
		s.buckets[s.written[i].name] = s.written[i].was
	}
	s.written, s.health = nil, well
}
