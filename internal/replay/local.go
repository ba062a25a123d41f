package replay

import (
	"context"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// replayBuckets bounds the memory store of a replay: a log of a few million
// addresses fits.
const replayBuckets = 4_000_000

// local decides in this process, on the clock of the log.
type local struct {
	limiter *limiter.Limiter
	now     time.Time
	show    bool // addresses
	batch   limiter.Batch
}

func newLocal(set *limit.Set, opts Options) (*local, error) {
	l := &local{show: opts.ShowAddresses}
	addrs, err := newHasher(opts.Secret)
	if err != nil {
		return nil, err
	}
	store := memory.New(memory.Options{Buckets: replayBuckets})
	l.limiter = limiter.New(limiter.Options{
		Store: store, Backstop: backstop.New(backstop.Options{Buckets: replayBuckets}), Addrs: addrs, Timeout: time.Hour, Now: func() time.Time { return l.now },
	}, set)
	return l, nil
}

// newHasher returns a hasher of addresses. Without a secret it uses a random one.
func newHasher(secret []byte) (*limit.AddrHasher, error) {
	if secret == nil {
		secret = limit.RandomSecret()
	}
	return limit.NewAddrHasher(secret, limit.Prefixes{})
}

func (l *local) decide(_ context.Context, batch []asked) ([]outcome, error) {
	out := make([]outcome, len(batch))
	for i := range batch {
		l.now = batch[i].at
		l.batch.Reset()
		l.batch.Requests = append(l.batch.Requests, batch[i].req)
		l.limiter.Decide(&l.batch)
		d := &l.batch.Decisions[0]
		out[i] = outcome{allowed: d.Allowed, limitID: d.LimitID(), applied: appliedOf(l.batch.Items(0))}
		if l.show {
			showAddress(out[i].applied, &batch[i].req)
		}
	}
	return out, nil
}

// showAddress adds the address of a request to the buckets that count by it.
func showAddress(all []applied, req *limit.Request) {
	for i := range all {
		if all[i].limit.CountsAddresses() && req.Addr.IsValid() {
			all[i].bucket += " " + req.Addr.String()
		}
	}
}

func appliedOf(items []limit.Item) []applied {
	out := make([]applied, len(items))
	for i := range items {
		it := &items[i]
		out[i] = applied{limit: it.Limit, bucket: string(it.Name), wouldDeny: !it.Enforced() && it.Denies(), refused: it.Refused(), left: -1}
		if it.Source != limit.SourceNone && it.Limit.Action == limit.ActionLimit && !it.Refused() {
			out[i].left = it.Remaining
		}
	}
	return out
}
