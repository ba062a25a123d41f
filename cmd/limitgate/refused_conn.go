package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// mostRefusal bounds the error that a connection remembers, in bytes.
const mostRefusal = 512

// refusal is an error that a server sent, and nothing else, before the connection failed.
type refusal struct {
	text string
	err  error // of the connection
}

// Error returns the text of the server.
func (e *refusal) Error() string { return e.text }

// Unwrap returns the error of the connection.
func (e *refusal) Unwrap() error { return e.err }

// refusedConn is a connection whose failure has the error that the server sent before. The client sends HELLO
// first, takes an error for the reply of an old Redis, and goes on: the end of the connection would be all that
// it reports.
type refusedConn struct {
	net.Conn
	received []byte // the first bytes
}

// dialRefused makes connections of a client show errors of servers that close them.
func dialRefused(o *redis.Options) {
	dial := redis.NewDialer(o)
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &refusedConn{Conn: c}, nil
	}
}

// Read implements net.Conn.
func (c *refusedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received = append(c.received, b[:min(n, mostRefusal-len(c.received))]...)
	return n, c.failure(err)
}

// Write implements net.Conn.
func (c *refusedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.failure(err)
}

// failure returns an error of the connection, or the refusal that it follows.
func (c *refusedConn) failure(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	line, rest, whole := strings.Cut(string(c.received), "\r\n")
	if text, refused := strings.CutPrefix(line, "-"); whole && refused && rest == "" {
		return &refusal{text: text, err: err}
	}
	return err
}
