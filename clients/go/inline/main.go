// Command inline needs no client: it types lines into a socket, as one does with
// telnet.
package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/clients/go/steps"
)

func main() { steps.Main("", open) }

func open(w steps.Wanted) (steps.Client, error) {
	c := &client{wanted: w}
	return c, c.connect()
}

type client struct {
	wanted  steps.Wanted
	conn    net.Conn
	replies *bufio.Reader
}

func (c *client) connect() error {
	conn, err := dial(c.wanted)
	if err != nil {
		return err
	}
	c.conn, c.replies = conn, bufio.NewReader(conn)
	if c.wanted.User == "" {
		return nil
	}
	_, err = c.Pipeline([][]string{{"AUTH", c.wanted.User, c.wanted.Password}})
	return err
}

func dial(w steps.Wanted) (net.Conn, error) {
	if config := w.TLS(); config != nil {
		return tls.Dial("tcp", w.Addr, config)
	}
	return net.Dial("tcp", w.Addr)
}

// refused is an error reply.
type refused string

func (r refused) Error() string { return string(r) }

func (c *client) Do(args ...string) (any, error) {
	replies, err := c.Pipeline([][]string{args})
	if err != nil {
		var reply refused
		if !errors.As(err, &reply) {
			c.Close()
			err = errors.Join(err, c.connect())
		}
		return nil, err
	}
	return replies[0], nil
}

func (c *client) Pipeline(commands [][]string) ([]any, error) {
	var lines strings.Builder
	for _, command := range commands {
		lines.WriteString(strings.Join(command, " ") + "\r\n")
	}
	if _, err := io.WriteString(c.conn, lines.String()); err != nil {
		return nil, err
	}
	var out []any
	for range commands {
		reply, err := c.read()
		if err != nil {
			return nil, err
		}
		out = append(out, reply)
	}
	return out, nil
}

// read reads a reply of the kinds that AUTH and decisions use.
func (c *client) read() (any, error) {
	line, err := c.replies.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSuffix(line[1:], "\r\n")
	if kind == '-' {
		return nil, refused(rest)
	}
	if kind == '+' {
		return rest, nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, err
	}
	switch kind {
	case ':':
		return n, nil
	case '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(c.replies, text)
		return text[:n], err
	case '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = c.read(); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("a reply that begins with %q", kind)
}

func (*client) Refused(err error) bool {
	var reply refused
	return errors.As(err, &reply)
}

func (c *client) Close() { _ = c.conn.Close() }
