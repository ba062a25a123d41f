package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// errOverdue is the error of a connection that is closed because a reply is overdue.
var errOverdue = fmt.Errorf("read reply: %w", context.DeadlineExceeded)

// dialer opens the connections of a pipeline.
type dialer struct {
	addr    string
	timeout time.Duration
	script  script
	cluster bool
	opts    Options
}

// newDialer returns the dialer of a node.
func (s *Store) newDialer(addr string, cluster bool) *dialer {
	return &dialer{addr: addr, timeout: s.opts.DialTimeout, script: s.script, cluster: cluster, opts: s.opts}
}

// dial connects to a node, checks that it is a master, loads the script and finds out how
// calls can be combined there.
func (d *dialer) dial(ctx context.Context) (*nodeConn, error) {
	began := time.Now()
	conn, err := d.opts.connect(ctx, d.addr)
	if err != nil {
		return nil, err
	}
	l := newNodeConn(conn)
	_ = conn.SetDeadline(began.Add(d.timeout))
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err = d.handshake(l)
	if err == nil && len(l.in.Buffered()) > 0 {
		err = resp.ErrReply // it would be taken for the reply to a batch
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("handshake with %s: %w", d.addr, err)
	}
	_ = conn.SetDeadline(time.Time{})
	return l, nil
}

// errLimitgate is returned for the address of a limitgate, which answers ROLE as a master.
const errLimitgate = configError("it is a limitgate, not a Redis: name the nodes that its own --redis names")

// isLimitgate reports whether an error is the reply of a limitgate to a command of Redis that it does not have.
func isLimitgate(err error) bool {
	return strings.Contains(err.Error(), "Limitgate keeps no data")
}

// handshake sends ROLE, loads the script and probes.
func (d *dialer) handshake(conn *nodeConn) error {
	out := resp.AppendCommand(nil, "ROLE")
	out = resp.AppendCommand(out, "SCRIPT", "LOAD", d.script.text)
	if _, err := conn.Write(out); err != nil {
		return err
	}
	role, err := conn.in.Strings()
	if err != nil {
		return err
	}
	if len(role) == 0 || role[0] != "master" {
		return fmt.Errorf("%s: %w, its role is %s", d.addr, ErrNotMaster, strings.Join(role[:min(1, len(role))], ""))
	}
	if _, err := conn.in.Strings(); err != nil {
		if isLimitgate(err) {
			return errLimitgate
		}
		return err
	}
	conn.opts.separate = d.opts.SeparateChecks
	if !d.cluster {
		conn.opts.acrossSlots, conn.opts.declared = true, true
		return nil
	}
	if !d.opts.DeclaredKeys {
		err := d.probe(conn)
		_, refused := resp.AsError(err)
		if k := kindOf(err); err != nil && (!refused || k != KindOther && k != KindAuth) {
			return err // the error is not about undeclared keys
		}
		conn.opts.acrossSlots = err == nil
	}
	conn.opts.declared = !conn.opts.acrossSlots
	return nil
}

// probe runs the script as a batch across hash slots does: with keys that are not declared.
// A key of another node proves as much as a local one: only a store that insists on
// declared keys refuses the whole call.
func (d *dialer) probe(conn *nodeConn) error {
	err := d.try(conn, d.probeBatch(opPeek, batchOptions{acrossSlots: true},
		[]limit.Item{ProbeItem("lg:probe:{1}", "")}, []limit.Item{ProbeItem("lg:probe:{2}", "")}))
	if k := kindOf(err); k == KindMoved || k == KindClusterDown {
		return nil // the script ran up to its first access to the key
	}
	return err
}

// probeLimit is the limit of probes. Its buckets are full again, and expire, about a second
// after a write.
var probeLimit = &limit.Limit{Params: bucket.Params{Algorithm: bucket.AlgorithmTokenBucket, Count: 1, Period: 1000, Capacity: 10_000}}

// ProbeItem returns an item for one unit of a bucket: the field of the string at key, or key
// itself if field is empty.
func ProbeItem(key, field string) limit.Item {
	return limit.Item{Limit: probeLimit, Cost: 1, Name: []byte(key + field), KeyLen: len(key), TagLen: len(key)}
}

// probeBatch returns an encoded batch of calls without waiting callers.
func (d *dialer) probeBatch(what op, opts batchOptions, calls ...[]limit.Item) *batch {
	nr := new(nodeRequest)
	nr.reset(what, route{}, slices.Concat(calls...), time.Now().Add(d.timeout))
	first := 0
	for _, items := range calls {
		nr.calls = append(nr.calls, limit.Call{First: first, Last: first + len(items)})
		first += len(items)
	}
	nr.open = len(nr.calls)
	b := newBatch()
	b.opts = opts
	b.addRequest(nr, time.Now())
	b.encode(d.script.sha)
	return b
}

// try sends a batch. It returns the error of the connection, or an error of a call that was
// not decided. KindMoved errors rank below all others.
func (d *dialer) try(conn *nodeConn, b *batch) error {
	if _, err := conn.Write(b.out); err != nil {
		return err
	}
	var refused error
	for i := range b.commands {
		err := b.readReply(&b.commands[i], conn.in, func(err error, _ []limit.Item) {
			if refused == nil || kindOf(err) != KindMoved {
				refused = err
			}
		})
		if err != nil {
			return err
		}
	}
	return refused
}
