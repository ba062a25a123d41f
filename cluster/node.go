package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ErrNotMaster is returned for a node that is not a master: decisions are
// never made by replicas.
var ErrNotMaster = errors.New("the node is not a master")

// node is one master and the connections to it.
type node struct {
	addr   string
	client *redis.Client
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
		MinIdleConns:             1,
	}
}

// newNode returns a node whose connections all begin with asking for its role.
func (o *Options) newNode(addr string) *node {
	opts := o.clientOptions(addr)
	opts.OnConnect = func(ctx context.Context, c *redis.Conn) error { return assertMaster(ctx, c, addr) }
	return &node{addr: addr, client: redis.NewClient(opts)}
}

// doer is a connection, or a pool of them.
type doer interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
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
