// Command valkeygo drives valkey-go: with ForceSingleClient, and without, when it
// asks the server whether it is a cluster.
package main

import (
	"context"
	"errors"

	"github.com/valkey-io/valkey-go"

	"github.com/limitgate/limitgate/clients/go/steps"
)

func main() { steps.Main(steps.Module("github.com/valkey-io/valkey-go"), open) }

func open(w steps.Wanted) (steps.Client, error) {
	c, err := valkey.NewClient(valkey.ClientOption{
		InitAddress:       []string{w.Addr},
		TLSConfig:         w.TLS(),
		Username:          w.User,
		Password:          w.Password,
		ForceSingleClient: !w.Cluster,
		AlwaysRESP2:       w.RESP == "2",
		DisableCache:      w.RESP == "2", // its cache needs RESP3
	})
	return client{c}, err
}

type client struct{ valkey.Client }

func (c client) command(args []string) valkey.Completed {
	return c.B().Arbitrary(args[0]).Args(args[1:]...).Build()
}

func (c client) Do(args ...string) (any, error) {
	return c.Client.Do(context.Background(), c.command(args)).ToAny()
}

func (c client) Pipeline(commands [][]string) ([]any, error) {
	built := make([]valkey.Completed, len(commands))
	for i, command := range commands {
		built[i] = c.command(command)
	}
	var out []any
	for _, reply := range c.DoMulti(context.Background(), built...) {
		value, err := reply.ToAny()
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

func (client) Refused(err error) bool {
	var reply *valkey.ValkeyError
	return errors.As(err, &reply)
}
