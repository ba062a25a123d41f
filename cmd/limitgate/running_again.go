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

// again decides whether a command that asks a limitgate again and again goes on after an error: it does once
// there was an answer, so that the command goes on after a restart of the limitgate.
type again struct {
	env            *environment
	name           string // of the command
	flags          *runningFlags
	answered, lost bool
}

// after receives the outcome of a question, and reports whether the command asks again. Of the errors that follow
// each other it prints the first.
func (a *again) after(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true // interrupted, which is the end
	}
	if err == nil {
		if a.lost {
			fmt.Fprintf(a.env.stderr, "limitgate %s: there are answers from %s again\n", a.name, a.flags.addr)
		}
		a.answered, a.lost = true, false
		return true
	}
	if !a.answered || a.flags.every <= 0 || !isNoAnswer(err) {
		return false
	}
	if !a.lost {
		a.lost = true
		fmt.Fprintf(a.env.stderr, "limitgate %s: no answer from %s: %s; asking again\n", a.name, a.flags.addr, describeLost(err))
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
