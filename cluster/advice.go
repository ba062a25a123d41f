package cluster

import (
	"errors"
	"io"
	"strings"

	"github.com/limitgate/limitgate/internal/resp"
)

// writeRefusals say why a node refuses all writes, and what to do, by the kind of the error.
var writeRefusals = map[ErrorKind]string{
	KindOOM:        "it has no memory left: raise its maxmemory, or move other data elsewhere",
	KindNoReplicas: "fewer replicas are connected to it than its min-replicas-to-write: connect one, or lower that",
	KindMisconf:    "it cannot save its data: look at its log and at the space on its disk; stop-writes-on-bgsave-error no lets it write meanwhile",
}

// RefusesWrites says why the node that returned an error refuses all writes, and what to do, or returns "".
func RefusesWrites(err error) string {
	if err == nil {
		return ""
	}
	return writeRefusals[kindOf(err)]
}

// ReplyRefusesWrites does what RefusesWrites does, of the text of a reply.
func ReplyRefusesWrites(reply string) string { return writeRefusals[kindOfReply(reply)] }

// Describe describes the failure of a call for an operator: the error, and the next step if it is known.
func Describe(err error) string {
	advice := advise(err)
	if advice == "" {
		return describe(err)
	}
	if kindOf(err) == KindAuth { // the advice has the error
		return advice
	}
	return describe(err) + "; " + advice
}

// Advice returns the next step for the failure of a call, without the reply that the error has, or "".
func Advice(err error) string {
	refused, _ := resp.AsError(causeOf(err))
	return strings.TrimPrefix(advise(err), string(refused)+": ")
}

// causeOf returns why there is no connection, if err is that there is none, and otherwise err.
func causeOf(err error) error {
	if down := new(downError); errors.As(err, &down) {
		return down.cause
	}
	return err
}

// describe returns the text of an error. The end of a connection is described as such.
func describe(err error) string {
	text := err.Error()
	if down := new(downError); errors.As(err, &down) {
		return strings.TrimSuffix(text, down.cause.Error()) + describe(down.cause)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if before, ok := strings.CutSuffix(text, "EOF"); ok {
			return strings.TrimSuffix(before, "unexpected ") + "the node closed the connection"
		}
	}
	return text
}

// advise returns the next step for the failure of a call, or "".
func advise(err error) string {
	switch kindOf(err) {
	case KindTimeout: // often this host's fault
		return "no answer within --decision-timeout: look at the load of both hosts, or raise it"
	case KindOverload:
		return "calls waited in this proxy for half of --decision-timeout: the node answers slowly or not at all, or this host has too much to do"
	case KindNetwork:
		return "look whether the node runs: the backstop decides for it until it answers or a replica replaces it"
	case KindMoved:
		return "the bucket has moved to another node: the proxy reads again which node has which slots; if this lasts, look whether redis-cli --cluster check agrees"
	case KindClusterDown:
		return "most masters are out, and the others answer when a majority is back; or a slot has no master: start it again, or give its slots to another, and cluster-require-full-coverage no lets the others answer meanwhile"
	case KindReadOnly:
		return "the node is a replica now: the proxy looks for its master in the cluster or at the Sentinels; where there are none name it by --redis, or if it is gone say REPLICAOF NO ONE to the node"
	case KindAuth:
		return explainRefusal(causeOf(err))
	default:
		return RefusesWrites(err)
	}
}
