package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/limitgate/limitgate/internal/run"
)

// This file replaces the connection of a pipeline when it has reached its age. The next
// connection is opened before the present one is closed, and calls wait no longer than for
// the replies to the batches in flight.

// errReplaced is returned by read when the next connection is open and nothing is in flight.
var errReplaced = errors.New("the connection is replaced by a younger one")

// replaceRetry is the pause after the next connection could not be opened. The age at which
// connections are replaced leaves room for many of them.
const replaceRetry = time.Minute

// readUntilReplaced reads replies until that fails, ctx ends or the connection is to be
// replaced.
func (p *pipeline) readUntilReplaced(ctx context.Context) (settled int, err error) {
	stop := context.AfterFunc(ctx, p.conn.hangUp)
	defer stop()
	age := p.connAge()
	if age <= 0 {
		return p.read()
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { p.prepareNext(ctx, age) })
	settled, err = p.read()
	cancel()
	wg.Wait()
	return settled, err
}

// prepareNext opens the next connection after a time, and wakes the reader.
func (p *pipeline) prepareNext(ctx context.Context, age time.Duration) {
	for run.Sleep(ctx, age) {
		conn, err := p.open(ctx)
		if err != nil {
			age = replaceRetry
			continue
		}
		p.mu.Lock()
		p.next = conn
		p.conn.wake()
		p.mu.Unlock()
		return
	}
}

// replaceable reports whether the next connection can replace the present one: no reply is to
// come on that, and nothing is sent from now on. The caller holds mu.
func (p *pipeline) replaceable() bool {
	return p.next != nil && len(p.inFlight) == 0 && !p.sending
}

// replace makes the next connection the present one.
func (p *pipeline) replace() {
	p.mu.Lock()
	p.conn.hangUp()
	p.conn, p.next = p.next, nil
	p.mu.Unlock()
	p.trySend()
}
