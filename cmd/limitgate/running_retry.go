package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/controlplane/table"
)

// retrier reports whether a command that asks a limitgate repeatedly retries after an error. It does so after a first
// answer: a restart of the limitgate does not end the command.
type retrier struct {
	env            *environment
	name           string // of the command
	flags          *runningFlags
	answered, lost bool
}

// retry receives the error of a question, or nil, and reports whether the command goes on. It prints the first of
// errors that follow each other.
func (r *retrier) retry(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true // interrupted, which is the end
	}
	if err == nil {
		if r.lost {
			fmt.Fprintf(r.env.stderr, "limitgate %s: there are answers from %s again\n", r.name, r.flags.addr)
		}
		r.answered, r.lost = true, false
		return true
	}
	if !r.answered || r.flags.every <= 0 || !isNoAnswer(err) {
		return false
	}
	if !r.lost {
		r.lost = true
		fmt.Fprintf(r.env.stderr, "limitgate %s: no answer from %s: %s; retrying\n", r.name, r.flags.addr, describeLost(err))
	}
	return true
}

// isNoAnswer reports whether an error is one of the connection, and not an answer that refuses.
func isNoAnswer(err error) bool {
	var network net.Error
	switch {
	case errors.As(err, new(*refusal)): // another protocol
		return false
	case strings.Contains(err.Error(), "max number of clients"):
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) || errors.As(err, &network)
}

// describeLost describes an error of the connection to a limitgate that answered before.
func describeLost(err error) string {
	if errors.Is(err, io.EOF) {
		return "it closed the connection"
	}
	return table.Printable(err.Error())
}
