package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// errOverdue is why a connection is given up whose reply does not come.
var errOverdue = fmt.Errorf("read reply: %w", context.DeadlineExceeded)

// dialer makes the connections of a lane.
type dialer struct {
	addr    string
	timeout time.Duration
	script  script
	cluster bool
	opts    Options
}

// dial connects to a node, makes sure that it is a master, loads the script and
// finds out how calls can be put together there.
func (d *dialer) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var nd net.Dialer
	conn, err := nd.DialContext(ctx, "tcp", d.addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	l := &link{Conn: conn, in: newReplies(conn)}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if err := d.greet(l); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("greet %s: %w", d.addr, err)
	}
	_ = conn.SetDeadline(time.Time{})
	return l, nil
}

// greet asks for the role, loads the script and probes.
func (d *dialer) greet(l *link) error {
	out := appendCommand(nil, "ROLE")
	out = appendCommand(out, "SCRIPT", "LOAD", d.script.text)
	if _, err := l.Write(out); err != nil {
		return err
	}
	role, err := l.in.words()
	if err != nil {
		return err
	}
	if len(role) == 0 || role[0] != "master" {
		return fmt.Errorf("%s: %w but says it is a %s", d.addr, ErrNotMaster, strings.Join(role[:min(1, len(role))], ""))
	}
	if _, err := l.in.words(); err != nil {
		return err
	}
	l.opts.separate = d.opts.SeparateChecks
	if !d.cluster {
		l.opts.acrossSlots, l.opts.declared = true, true
		return nil
	}
	if !d.opts.DeclaredKeys {
		err := d.probe(l)
		if _, refused := refusal(err); err != nil && !refused {
			return err
		}
		l.opts.acrossSlots = err == nil
	}
	l.opts.declared = !l.opts.acrossSlots
	return nil
}

// probe runs the script as a flight across slots would: with keys that are not
// declared. A key that lives elsewhere proves as much as one that is here: only
// a store that insists on declared keys refuses the whole call.
func (d *dialer) probe(l *link) error {
	f := flight{opts: flightOptions{acrossSlots: true}}
	it := limit.Item{Limit: &limit.Limit{Params: limit.Params{Algorithm: limit.AlgorithmTokenBucket, Count: 1, Period: 1, Capacity: 1}}, Cost: 1}
	t := newTicket()
	for _, name := range []string{"lg:probe:{1}", "lg:probe:{2}"} {
		it.Name, it.KeyLen, it.TagLen = []byte(name), len(name), len(name)
		t.items = append(t.items, it)
	}
	t.reset(verbPeek, t.items, time.Now().Add(d.timeout))
	for i := range t.items {
		t.calls = append(t.calls, limit.Call{First: i, Last: i + 1})
	}
	t.open = len(t.calls)
	f.board(t, time.Now())
	f.encode(d.script.sha)
	if _, err := l.Write(f.out); err != nil {
		return err
	}
	var refused error
	err := f.settle(&f.commands[0], l.in, func(err error, _ []limit.Item) {
		if kindOf(err) != KindMoved {
			refused = err
		}
	})
	return errors.Join(err, refused)
}

// appendCommand appends a command.
func appendCommand(b []byte, words ...string) []byte {
	b = appendArray(b, len(words))
	for _, w := range words {
		b = appendBulk(b, w)
	}
	return b
}
