package replay

import (
	"context"
	"io"

	"github.com/limitgate/limitgate/limit"
)

// Comparison is the effect of two limits files on the same traffic.
type Comparison struct {
	Old *Report `json:"old"`
	New *Report `json:"new"`
	// NewlyDenied were admitted by the old limits and are denied by the new
	// ones; NewlyAdmitted the other way round.
	NewlyDenied   int64 `json:"newly_denied"`
	NewlyAdmitted int64 `json:"newly_admitted"`
}

// both decides every request by two sets.
type both struct {
	old, new *local
	outcomes []outcome // of the new one, for the batch decided last
	at       int
}

func (b *both) decide(ctx context.Context, batch []asked) ([]outcome, error) {
	var err error
	if b.outcomes, err = b.new.decide(ctx, batch); err != nil {
		return nil, err
	}
	b.at = 0
	return b.old.decide(ctx, batch)
}

// Compare replays a log through two sets.
func Compare(ctx context.Context, log io.Reader, oldSet, newSet *limit.Set, opts Options) (*Comparison, error) {
	oldLocal, err := newLocal(oldSet, opts)
	if err != nil {
		return nil, err
	}
	newLocal, err := newLocal(newSet, opts)
	if err != nil {
		return nil, err
	}
	d := &both{old: oldLocal, new: newLocal}
	c := &Comparison{}
	oldTally, newTally := newTally(oldSet, false), newTally(newSet, false)
	oldTally.report.addresses, newTally.report.addresses = opts.ShowAddresses, opts.ShowAddresses
	s, err := run(ctx, log, opts, d, func(a *asked, before *outcome) {
		after := &d.outcomes[d.at]
		d.at++
		oldTally.add(a, before)
		newTally.add(a, after)
		switch {
		case before.allowed && !after.allowed:
			c.NewlyDenied++
		case !before.allowed && after.allowed:
			c.NewlyAdmitted++
		}
	})
	if err != nil {
		return nil, err
	}
	c.Old, c.New = oldTally.finish(s), newTally.finish(s)
	return c, nil
}
