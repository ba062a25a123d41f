// Command rediscli types into one redis-cli, whose options are the last arguments.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/clients/go/program"
	"github.com/limitgate/limitgate/clients/go/steps"
)

func main() { steps.Main(program.Version("redis-cli"), open) }

func open(w steps.Wanted) (steps.Client, error) {
	options := w.More
	if w.Cluster {
		options = append([]string{"-c"}, options...)
	}
	command := program.Command("redis-cli", w, options...)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	end := func() {
		_ = in.Close()
		_ = command.Wait()
	}
	c := &client{in: in, out: bufio.NewScanner(out), json: slices.Contains(w.More, "--json"), end: end}
	return c, command.Start()
}

type client struct {
	in    io.Writer
	out   *bufio.Scanner
	json  bool
	asked int
	end   func()
}

// refused is an error reply, which redis-cli prints like any other.
type refused string

func (r refused) Error() string { return string(r) }

// Do types a command, and a second one whose reply marks the end of the first reply.
func (c *client) Do(args ...string) (any, error) {
	c.asked++
	mark := fmt.Sprintf("end-%d", c.asked)
	if _, err := fmt.Fprintf(c.in, "%s\nECHO %s\n", strings.Join(args, " "), mark); err != nil {
		return nil, err
	}
	var lines []string
	for c.out.Scan() {
		line := c.out.Text()
		if line == mark || line == `"`+mark+`"` {
			return c.parse(lines)
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return nil, fmt.Errorf("redis-cli ended after %q", lines)
}

func (c *client) parse(lines []string) (any, error) {
	text := strings.Join(lines, "\n")
	if at := strings.Index(text, "ERR "); at >= 0 {
		return nil, refused(text[at:])
	}
	var reply []any
	if c.json {
		if err := json.Unmarshal([]byte(text), &reply); err != nil {
			return nil, fmt.Errorf("redis-cli prints %q: %w", text, err)
		}
		for i, field := range reply {
			if number, ok := field.(float64); ok {
				reply[i] = int64(number)
			}
		}
		return reply, nil
	}
	for _, line := range lines {
		if number, err := strconv.ParseInt(line, 10, 64); err == nil {
			reply = append(reply, number)
		} else {
			reply = append(reply, line)
		}
	}
	return reply, nil
}

func (*client) Pipeline([][]string) ([]any, error) { return nil, steps.ErrNotThere }

func (*client) Refused(err error) bool {
	var reply refused
	return errors.As(err, &reply)
}

func (c *client) Close() { c.end() }
