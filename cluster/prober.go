package cluster

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
)

// Prober connects to the nodes of a store as a Store does, on keys of the caller. It is
// safe for concurrent use.
type Prober struct{ store *Store }

// NewProber returns a prober. It returns an error for options that no Store can be opened
// with.
func NewProber(opts Options) (*Prober, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	return &Prober{&Store{opts: opts, script: newDecideScript(writeFormat)}}, nil
}

// Contact connects to a node and reads its role. The error names the problem if there is no
// Redis at addr that a Store could use.
func (p *Prober) Contact(ctx context.Context, addr string) (Contact, error) {
	return p.store.opts.contactMaster(ctx, addr, p.store.opts.DialTimeout)
}

// Layout is the masters of a store.
type Layout struct {
	Cluster bool
	// Masters are the addresses in the order of the masters' first hash slots.
	Masters []string
	// Owners has for each hash slot the index of its master in Masters, or -1.
	Owners [limit.NumHashSlots]int
}

// Layout fetches the layout of the store from a node that was contacted.
func (p *Prober) Layout(ctx context.Context, addr string, c Contact) (*Layout, error) {
	t, err := p.store.fetchFrom(ctx, addr, c, nil)
	if err != nil {
		return nil, err
	}
	defer t.abandon(nil)
	l := &Layout{Cluster: t.cluster}
	indexes := map[*node]int{nil: -1}
	for slot, n := range t.slots {
		i, known := indexes[n]
		if !known {
			i = len(l.Masters)
			indexes[n] = i
			l.Masters = append(l.Masters, n.addr)
		}
		l.Owners[slot] = i
	}
	return l, nil
}

// Client returns a client with the options that a Store has for commands other than
// decisions. The caller closes it.
func (p *Prober) Client(addr string) *redis.Client { return p.store.newClient(addr) }

// AnyClient returns a client as Client does, of a node that may be a replica.
func (p *Prober) AnyClient(addr string) *redis.Client {
	return redis.NewClient(p.store.opts.clientOptions(addr))
}

// Connect opens a connection to a master like a pipeline: it checks the role, loads the
// script and finds out the mode.
func (p *Prober) Connect(ctx context.Context, addr string, cluster bool) (*ProbeConn, error) {
	d := p.store.newDialer(addr, cluster)
	conn, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	return &ProbeConn{d, conn}, nil
}

// ProbeConn is a connection to a master. One goroutine may use it. Methods return the error
// of the connection, or an error reply, see resp.AsError.
type ProbeConn struct {
	dialer *dialer
	conn   *nodeConn
}

// Mode returns how a Store would send batches over this connection.
func (c *ProbeConn) Mode() Mode { return c.conn.opts.mode() }

// SetDeadline sets the time at which an exchange in progress fails.
func (c *ProbeConn) SetDeadline(t time.Time) { _ = c.conn.SetDeadline(t) }

// Close closes the connection.
func (c *ProbeConn) Close() { c.conn.hangUp() }

// Exchange sends commands and reads n replies. It returns the first error of each, or the
// first error reply, after all replies are read.
func (c *ProbeConn) Exchange(out []byte, n int, each func(i int, words []string) error) error {
	if _, err := c.conn.Write(out); err != nil {
		return err
	}
	var first error
	for i := range n {
		words, err := c.conn.in.Strings()
		if _, refused := resp.AsError(err); err != nil && !refused {
			return err
		}
		if err == nil {
			err = each(i, words)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// Peek evaluates calls, with declared keys.
func (c *ProbeConn) Peek(calls ...[]limit.Item) error { return c.decide(opPeek, calls) }

// Take decides calls, with declared keys.
func (c *ProbeConn) Take(calls ...[]limit.Item) error { return c.decide(opTake, calls) }

func (c *ProbeConn) decide(what op, calls [][]limit.Item) error {
	return c.dialer.try(c.conn, c.dialer.probeBatch(what, batchOptions{declared: true}, calls...))
}

// PeekUndeclared evaluates a call whose keys are not declared.
func (c *ProbeConn) PeekUndeclared() error { return c.dialer.probe(c.conn) }

// EncodedBatch is a batch of decisions as a Store sends it.
type EncodedBatch struct {
	Commands []byte
	Replies  int // the number of replies
}

// Encode returns calls that take units as the batch that a Store would send over this
// connection.
func (c *ProbeConn) Encode(calls ...[]limit.Item) EncodedBatch {
	b := c.dialer.probeBatch(opTake, c.conn.opts, calls...)
	return EncodedBatch{b.out, len(b.commands)}
}

// KeepSecret makes the commands for agreeing on a secret, on a key of the caller.
func (c *ProbeConn) KeepSecret(key string) error {
	const ttl = "5000" // ms
	out := resp.AppendCommand(nil, "SET", key, "probe", "NX", "PX", ttl)
	return c.Exchange(resp.AppendCommand(out, "GETEX", key, "PX", ttl), 2, func(int, []string) error { return nil })
}

// Beat makes the commands of a heartbeat, on a key of the caller.
func (c *ProbeConn) Beat(key string) error {
	out := resp.AppendCommand(nil, "SCRIPT", "LOAD", beatScript.text)
	out = resp.AppendCommand(out, append([]string{"EVALSHA", beatScript.sha, "1", key}, beatArgs("probe")...)...)
	out = resp.AppendCommand(out, "HDEL", key, "probe")
	return c.Exchange(out, 3, func(int, []string) error { return nil })
}
