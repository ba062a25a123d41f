// Command goredis drives go-redis, single and as ClusterClient.
package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/clients/go/steps"
)

func main() { steps.Main(steps.Module("github.com/redis/go-redis/v9"), open) }

func open(w steps.Wanted) (steps.Client, error) {
	protocol := map[string]int{"2": 2, "3": 3}[w.RESP]
	if w.Cluster {
		return client{redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{w.Addr}, Protocol: protocol, TLSConfig: w.TLS(), Username: w.User, Password: w.Password,
		})}, nil
	}
	return client{redis.NewClient(&redis.Options{
		Addr: w.Addr, Protocol: protocol, TLSConfig: w.TLS(), Username: w.User, Password: w.Password,
	})}, nil
}

type client struct{ redis.UniversalClient }

func (c client) Do(args ...string) (any, error) {
	return c.UniversalClient.Do(context.Background(), steps.Values(args)...).Result()
}

func (c client) Pipeline(commands [][]string) ([]any, error) {
	replies, err := c.Pipelined(context.Background(), func(p redis.Pipeliner) error {
		for _, command := range commands {
			p.Do(context.Background(), steps.Values(command)...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]any, len(replies))
	for i, reply := range replies {
		out[i] = reply.(*redis.Cmd).Val()
	}
	return out, nil
}

func (client) Refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func (c client) Close() { _ = c.UniversalClient.Close() }
