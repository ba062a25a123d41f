// Command redigo drives redigo through its pool.
package main

import (
	"errors"

	"github.com/gomodule/redigo/redis"

	"github.com/limitgate/limitgate/clients/go/steps"
)

func main() { steps.Main(steps.Module("github.com/gomodule/redigo"), open) }

func open(w steps.Wanted) (steps.Client, error) {
	options := []redis.DialOption{
		redis.DialUseTLS(w.CA != ""), redis.DialTLSConfig(w.TLS()), redis.DialUsername(w.User), redis.DialPassword(w.Password),
	}
	return client{&redis.Pool{
		MaxIdle: 3, // the default keeps none
		Dial:    func() (redis.Conn, error) { return redis.Dial("tcp", w.Addr, options...) },
	}}, nil
}

type client struct{ pool *redis.Pool }

func (c client) Do(args ...string) (any, error) {
	conn := c.pool.Get()
	defer func() { _ = conn.Close() }()
	return conn.Do(args[0], steps.Values(args[1:])...)
}

func (c client) Pipeline(commands [][]string) ([]any, error) {
	conn := c.pool.Get()
	defer func() { _ = conn.Close() }()
	for _, command := range commands {
		if err := conn.Send(command[0], steps.Values(command[1:])...); err != nil {
			return nil, err
		}
	}
	if err := conn.Flush(); err != nil {
		return nil, err
	}
	var out []any
	for range commands {
		reply, err := conn.Receive()
		if err != nil {
			return nil, err
		}
		out = append(out, reply)
	}
	return out, nil
}

func (client) Refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func (c client) Close() { _ = c.pool.Close() }
