package bypass

import (
	"context"
	"time"
)

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
func (t *Tokens) record(known *token, u *Use, outcome Outcome) {
	if outcome != Used && !known.refusals[outcome].Allow() {
		return
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
