// Command radix drives radix, through its pool and its cluster client.
package main

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/mediocregopher/radix/v4"
	"github.com/mediocregopher/radix/v4/resp/resp3"

	"github.com/limitgate/limitgate/clients/go/steps"
)

func main() { steps.Main(steps.Module("github.com/mediocregopher/radix/v4"), open) }

func open(w steps.Wanted) (steps.Client, error) {
	// Of several connections each would fail once after it was killed.
	pool := radix.PoolConfig{Size: 1, Dialer: radix.Dialer{AuthUser: w.User, AuthPass: w.Password}}
	if config := w.TLS(); config != nil {
		pool.Dialer.NetDialer = &tls.Dialer{Config: config}
	}
	if w.Cluster {
		c, err := radix.ClusterConfig{PoolConfig: pool}.New(context.Background(), []string{w.Addr})
		return client{c}, err
	}
	c, err := pool.New(context.Background(), "tcp", w.Addr)
	return client{c}, err
}

type doer interface {
	Do(context.Context, radix.Action) error
	Close() error
}

type client struct{ doer }

func (c client) Do(args ...string) (any, error) {
	var reply any
	err := c.doer.Do(context.Background(), radix.Cmd(&reply, args[0], args[1:]...))
	return reply, err
}

func (c client) Pipeline(commands [][]string) ([]any, error) {
	out := make([]any, len(commands))
	p := radix.NewPipeline()
	for i, command := range commands {
		p.Append(radix.Cmd(&out[i], command[0], command[1:]...))
	}
	return out, c.doer.Do(context.Background(), p)
}

func (client) Refused(err error) bool {
	var reply resp3.SimpleError
	return errors.As(err, &reply)
}

func (c client) Close() { _ = c.doer.Close() }
