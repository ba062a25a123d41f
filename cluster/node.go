package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"golang.org/x/sync/semaphore"
)

// ErrNotMaster is returned for a node that is not a master: decisions are
// never made by replicas.
var ErrNotMaster = errors.New("the node is not a master")

const (
	// maxInFlight bounds the calls that are on their way to one node: two full
	// batches of a pipeline. More would only queue in front of the one thread
	// that decides, and be charged there after their callers have left.
	maxInFlight = 64
	// idleConns is how many connections to a node are kept ready.
	idleConns = 4
)

// node is one master and the connections to it.
type node struct {
	addr   string
	client *redis.Client
	// inFlight admits maxInFlight calls at a time, in the order they came.
	inFlight *semaphore.Weighted
	// sick says that the log says so; reported is when it last did, in seconds.
	sick     atomic.Bool
	reported atomic.Int64
}

// clientOptions are those of every connection: nothing is ever sent twice, and
// deadlines hold.
func (o *Options) clientOptions(addr string) *redis.Options {
	return &redis.Options{
		Addr:                     addr,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1,
		DialerRetries:            1,
		ContextTimeoutEnabled:    true,
		DialTimeout:              o.DialTimeout,
		ReadTimeout:              o.IOTimeout,
		WriteTimeout:             o.IOTimeout,
		PoolTimeout:              time.Minute, // the context's deadline comes first
		PoolSize:                 o.PoolSize,
		PipelinePoolSize:         -1,
		MinIdleConns:             idleConns,
	}
}

// newNode returns a node whose connections all begin with asking for its role.
func (o *Options) newNode(addr string) *node {
	opts := o.clientOptions(addr)
	opts.OnConnect = func(ctx context.Context, c *redis.Conn) error { return assertMaster(ctx, c, addr) }
	return &node{addr: addr, client: redis.NewClient(opts), inFlight: semaphore.NewWeighted(maxInFlight)}
}

// warm makes a connection and loads the scripts, so that the first decisions
// need not wait for that. Trouble is left to those decisions.
func (n *node) warm(ctx context.Context, texts scripts) {
	pipe := n.client.Pipeline()
	pipe.ScriptLoad(ctx, texts.take.text)
	pipe.ScriptLoad(ctx, texts.refund.text)
	_, _ = pipe.Exec(ctx)
}

// doer is a connection, or a pool of them.
type doer interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// enter waits for the turn of n calls, and reports whether it came in time: with
// at least half of what was left, since the reply takes its time too. What comes
// later is better not sent: it would be charged for nothing.
func (n *node) enter(ctx context.Context, calls int64) bool {
	if n.inFlight.TryAcquire(calls) {
		return true
	}
	deadline, _ := ctx.Deadline()
	turn, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
	defer cancel()
	return n.inFlight.Acquire(turn, calls) == nil
}

func assertMaster(ctx context.Context, c doer, addr string) error {
	reply, err := c.Do(ctx, "ROLE").Slice()
	if err != nil {
		return fmt.Errorf("ask role of %s: %w", addr, err)
	}
	if len(reply) == 0 || reply[0] != "master" {
		return fmt.Errorf("%s: %w but says it is a %v", addr, ErrNotMaster, first(reply))
	}
	return nil
}

func first(reply []any) any {
	if len(reply) == 0 {
		return "nobody"
	}
	return reply[0]
}
