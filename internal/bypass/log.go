package bypass

import (
	"context"
	"time"
)

// Outcome is the result of a use of a token.
type Outcome uint8

// The outcomes.
const (
	// Used means that the request passed the limits. After all others the limits decide.
	Used Outcome = iota
	// OverRate means that the token has admitted as much as its rate.
	OverRate
	// Expired means that the token has ended.
	Expired
	// TooEarly means that the token has not begun.
	TooEarly
	// Revoked means that the id of the token is revoked.
	Revoked
	// OtherTenant means that the token is for another tenant.
	OtherTenant
	// Invalid means that no key has signed the token, that its claims are wrong, or that it ends
	// later than MaxLife from now.
	Invalid
	// Unchecked means that the client has sent too many tokens that no key has signed.
	Unchecked

	numOutcomes
)

var outcomeNames = [numOutcomes]string{"used", "over_rate", "expired", "too_early", "revoked", "other_tenant", "invalid", "unchecked"}

// Outcomes are all outcomes.
func Outcomes() (all []Outcome) {
	for o := range numOutcomes {
		all = append(all, o)
	}
	return all
}

// String returns the word that metrics and logs have for an outcome.
func (o Outcome) String() string { return outcomeNames[o] }

const (
	// maxLines bounds the lines that wait for the log: the connections of other clients must
	// not wait for a slow one.
	maxLines = 1024
	// refusalEvery is the time between two lines about refusals of one token for one
	// reason: a client sends it with each request, and the limits decide.
	refusalEvery = time.Minute
)

// line is a line of the log.
type line struct {
	known            *token
	outcome          Outcome
	user, tenant, op string
	cost             int64
}

// record logs a use of a token: each that passed the limits, and some of the others. Lines that
// do not fit are counted.
func (t *Tokens) record(known *token, u *Use, outcome Outcome, now time.Time) {
	if outcome != Used {
		logged := &known.logged[outcome]
		last := logged.Load()
		if now.UnixNano()-last < int64(refusalEvery) || !logged.CompareAndSwap(last, now.UnixNano()) {
			return
		}
	}
	// The strings of a request alias the memory of its connection.
	l := line{known, outcome, u.User, string([]byte(u.Tenant)), string([]byte(u.Op)), u.Cost}
	select {
	case t.lines <- l:
	default:
		t.omitted.Add(1)
	}
}

// Run writes the log until ctx ends, and then the lines that wait.
func (t *Tokens) Run(ctx context.Context) error {
	for {
		select {
		case l := <-t.lines:
			t.write(&l)
		case <-ctx.Done():
			for {
				select {
				case l := <-t.lines:
					t.write(&l)
				default:
					return nil
				}
			}
		}
	}
}

// write writes a line, and before it how many did not fit.
func (t *Tokens) write(l *line) {
	if n := t.omitted.Swap(0); n > 0 {
		t.log.Warn("uses of bypass tokens were not logged: the log is slower than they are", "uses", n)
	}
	attributes := []any{"id", l.known.ID, "name", l.known.Name, "outcome", l.outcome.String(), "user", l.user, "tenant", l.tenant, "op", l.op, "cost", l.cost}
	switch {
	case l.known.problem != nil:
		attributes = append(attributes, "error", l.known.problem)
	case l.outcome == Invalid:
		attributes = append(attributes, "error", "exp must be at most 366 days from now")
	}
	if l.outcome == Used {
		t.log.Info("bypass token used", attributes...)
	} else {
		t.log.Warn("bypass token refused, the limits decide", attributes...)
	}
}
