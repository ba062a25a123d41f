package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// Target is one server and its requests.
type Target struct {
	Addr  string // an IPv4 address and a port
	Conns int
	Keys  Keys
}

// Options are the targets and the requests.
type Options struct {
	Targets []Target
	Request *Request
	Shape   Shape
	// Pipeline is the number of requests that a connection sends at once.
	Pipeline int
	// TLS, unless nil, encrypts the connections. It has a ServerName.
	TLS *tls.Config
	// Login, unless nil, is sent once by each connection, before the requests. Its reply
	// must be OK.
	Login *Request
}

// Load is the length and rate of a run. One of Duration and Requests ends it.
type Load struct {
	Duration time.Duration
	Requests int64
	// Rate is the requests a second of an open load; 0 means a closed load.
	Rate float64
	// Slice, with a Duration, also records the outcome of each part of this length.
	Slice time.Duration
	// ByTarget, without a Slice, also records the outcome of each target.
	ByTarget bool
}

// stallTimeout is the maximum time without any reply of a server.
const stallTimeout = 15 * time.Second

// Generator holds the connections. It is not safe for concurrent use.
type Generator struct {
	opts   Options
	poller *poller
	conns  []*conn
}

// Dial connects to all targets.
func Dial(opts Options) (*Generator, error) {
	poller, err := newPoller()
	if err != nil {
		return nil, err
	}
	g := &Generator{opts: opts, poller: poller}
	for i, t := range opts.Targets {
		keys := &cursor{keys: t.Keys}
		for range t.Conns {
			if err := g.connect(t.Addr, i, keys); err != nil {
				g.Close()
				return nil, err
			}
		}
	}
	if len(g.conns) == 0 {
		g.Close()
		return nil, errors.New("make load: no connections are asked for")
	}
	return g, nil
}

func (g *Generator) connect(addr string, target int, keys *cursor) error {
	if len(keys.keys) == 0 {
		return fmt.Errorf("make load: no keys for %s", addr)
	}
	fd, err := openSocket(addr)
	if err != nil {
		return err
	}
	c := &conn{id: len(g.conns), target: target, fd: fd, keys: keys, in: make([]byte, inputSize)}
	g.conns = append(g.conns, c)
	if g.opts.TLS != nil {
		if err := c.encrypt(g.opts.TLS); err != nil {
			return err
		}
	}
	if err := g.poller.watch(fd, c.id, false, false); err != nil {
		return err
	}
	if g.opts.Login != nil {
		return g.login(c)
	}
	return nil
}

// login sends the login of a connection and waits for its reply.
func (g *Generator) login(c *conn) error {
	c.out = g.opts.Login.append(c.out, 0)
	if err := c.seal(0); err != nil {
		return fmt.Errorf("make load: login: %w", err)
	}
	if err := c.flush(g.poller); err != nil {
		return fmt.Errorf("make load: login: %w", err)
	}
	for !bytes.HasSuffix(c.in[:c.have], []byte("\r\n")) {
		if err := awaitInput(c.fd, dialTimeout); err != nil {
			return fmt.Errorf("make load: login: %w", err)
		}
		c.wake()
		if _, err := c.fill(); err != nil {
			return fmt.Errorf("make load: login: %w", err)
		}
	}
	if reply := string(c.in[:c.have]); reply != "+OK\r\n" {
		return fmt.Errorf("make load: login: unexpected reply %.80q", reply)
	}
	c.have = 0
	return nil
}

// Close closes the connections.
func (g *Generator) Close() {
	for _, c := range g.conns {
		closeSocket(c.fd)
	}
	g.poller.close()
}

// Run makes load and returns when every request is answered. It fails if a server closes
// a connection, stops answering, or sends a reply of another shape; then the generator
// cannot be used any more. Error replies are counted and are no error of Run.
func (g *Generator) Run(ctx context.Context, l Load) (*Outcome, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &run{Generator: g, load: l, out: newOutcome(&l, len(g.opts.Targets)), left: l.Requests}
	if l.Requests == 0 {
		r.left = 1 << 62
	}
	// The little garbage of a run is collected between runs.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r.started = time.Now()
	if err := r.loop(ctx); err != nil {
		return nil, fmt.Errorf("make load: %w", err)
	}
	return r.out, nil
}

// run is one run of a generator.
type run struct {
	*Generator
	load    Load
	out     *Outcome
	started time.Time
	left    int64 // requests that may still be sent
	waiting int   // outstanding replies on all connections
	heard   int64 // when the last reply arrived
	sent    int64 // requests of an open load
}

// now is the time since the start in nanoseconds.
func (r *run) now() int64 { return int64(time.Since(r.started)) }

func (r *run) loop(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
	for {
		now := r.now()
		pause, err := r.issueDue(now)
		if err != nil {
			return err
		}
		if r.waiting == 0 && r.over(now) {
			r.out.close(r.heard)
			return nil
		}
		if r.waiting > 0 && now-r.heard > int64(stallTimeout) {
			return fmt.Errorf("wait for %d replies: none came within %v", r.waiting, stallTimeout)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.poller.wait(pause)
		if err != nil {
			return err
		}
		for i := range n {
			if err := r.serve(i); err != nil {
				return err
			}
		}
	}
}

// begin sends the first pipelines of a closed load.
func (r *run) begin() error {
	for _, c := range r.conns {
		if r.load.Rate > 0 {
			break
		}
		if err := r.issue(c, r.now()); err != nil {
			return err
		}
	}
	return nil
}

// over reports whether no more requests are to be sent.
func (r *run) over(now int64) bool {
	if r.load.Rate > 0 {
		return r.dueAt() >= int64(r.load.Duration)
	}
	return r.left <= 0 || r.load.Duration > 0 && now >= int64(r.load.Duration)
}

// issue sends the next pipeline of a connection, if there is one.
func (r *run) issue(c *conn, now int64) error {
	n := int(min(int64(r.opts.Pipeline), r.left))
	if n == 0 || r.over(now) {
		return nil
	}
	r.left -= int64(n)
	r.waiting += n
	if err := c.add(r.opts.Request, n, now); err != nil {
		return err
	}
	return c.flush(r.poller)
}

// dueAt returns the time at which the next request of an open load is due.
func (r *run) dueAt() int64 { return int64(float64(r.sent) * 1e9 / r.load.Rate) }

// checkPause bounds a wait, so that a cancelled context is noticed.
const checkPause = 50 * time.Millisecond

// issueDue sends the due requests of an open load, connection by connection in turn, and
// returns how long to wait for more.
func (r *run) issueDue(now int64) (pause time.Duration, err error) {
	if r.load.Rate == 0 {
		return checkPause, nil
	}
	for ; !r.over(now) && r.dueAt() <= now; r.sent++ {
		c := r.conns[r.sent%int64(len(r.conns))]
		if err := c.add(r.opts.Request, 1, r.dueAt()); err != nil {
			return 0, err
		}
		r.waiting++
		if err := c.flush(r.poller); err != nil {
			return 0, err
		}
	}
	if r.over(now) {
		return checkPause, nil
	}
	return min(checkPause, time.Duration(r.dueAt()-r.now())), nil
}

// serve handles the events of a connection.
func (r *run) serve(i int) error {
	id, read, write := r.poller.ready(i)
	c := r.conns[id]
	if write {
		if err := c.flush(r.poller); err != nil {
			return err
		}
	}
	if !read {
		return nil
	}
	c.wake()
	for {
		if filled, err := c.fill(); !filled {
			return err
		}
		more, err := r.receive(c)
		if err != nil || !more {
			return err
		}
	}
}

// receive counts the replies that have arrived on a connection, and sends the next
// pipeline if they are all. Otherwise TLS may hold more, which the poller does not report.
func (r *run) receive(c *conn) (more bool, err error) {
	now := r.now()
	err = c.settle(func(due int64, most int, b []byte) (n, size int, err error) {
		return r.count(c.target, now-due, due, most, b)
	})
	if err != nil {
		return false, err
	}
	r.heard = now
	if c.waiting > 0 {
		return c.secure != nil, nil
	}
	if r.load.Rate == 0 {
		err = r.issue(c, now)
	}
	return false, err
}

// count counts replies of a target to requests that were due at the same time.
func (r *run) count(target int, latency, due int64, most int, b []byte) (n, size int, err error) {
	tally := &r.out.Tally
	part := r.out.part(target, due, &r.load)
	if part != nil {
		tally = &part.Tally
	}
	n, size, err = tally.countUpTo(most, r.opts.Shape, b)
	if err != nil || n == 0 {
		return 0, size, err
	}
	r.waiting -= n
	latency = min(latency, longest)
	if part != nil {
		_ = part.Latency.RecordValues(latency, int64(n)) // fails only above longest, which latency does not exceed
	}
	return n, size, r.out.Latency.RecordValues(latency, int64(n))
}
