package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// errNoNode is the error of a call that was never sent: no known node owns its slot.
var errNoNode = errors.New("send call: no node owns its slot")

// noOwnerError is errNoNode in words for an operator.
type noOwnerError string

func (e noOwnerError) Error() string { return string(e) }

func (noOwnerError) Unwrap() error { return errNoNode }

// errBreaker is the error of a call that was never sent: the breaker of its shard is open.
var errBreaker = errors.New("send call: the breaker of its shard is open")

// brokenError is the error of a call on a connection that ended, before a new one has failed.
type brokenError struct{}

func (brokenError) Error() string {
	return "send call: the connection broke, and no new one answers"
}

func (brokenError) Unwrap() error { return net.ErrClosed }

// downError is the error of a call that was never sent: there is no connection, because of
// cause.
type downError struct{ cause error }

func (e *downError) Error() string { return "send call: no connection: " + e.cause.Error() }

// kind returns KindNetwork, unless the node refuses connections for a reason of its own.
func (e *downError) kind() ErrorKind {
	switch k := kindOf(e.cause); k {
	case KindAuth, KindTLS, KindRole, KindLoading, KindMasterDown:
		return k
	default:
		return KindNetwork
	}
}

// ErrorKind is a kind of store failure, for counting.
type ErrorKind uint8

// The kinds of failures.
const (
	KindTimeout     ErrorKind = iota // no reply before the deadline: it may have been executed
	KindNetwork                      // the connection failed
	KindMoved                        // MOVED: another node owns the slot
	KindAsk                          // ASK: the slot is moving
	KindTryAgain                     // TRYAGAIN: only some of the keys have moved
	KindClusterDown                  // CLUSTERDOWN
	KindReadOnly                     // READONLY: a replica
	KindLoading                      // LOADING: the node loads its data
	KindMasterDown                   // MASTERDOWN
	KindOOM                          // out of memory
	KindBusy                         // BUSY: the node runs a script
	KindNoReplicas                   // NOREPLICAS
	KindAuth                         // NOAUTH, WRONGPASS, NOPERM, and a node without scripts
	KindWrongType                    // a value of another program under a key of ours
	KindFormat                       // a value that is not a bucket, or a later format
	KindRole                         // the node is not a master
	KindNoNode                       // no known node owns the slot
	KindOverload                     // not sent before its sendBy
	KindBreaker                      // not sent because the shard's breaker is open
	KindNoScript                     // the script was flushed repeatedly
	KindMisconf                      // MISCONF: the node cannot save its data and rejects writes
	KindTLS                          // TLS could not be established
	KindOther                        // anything else
	numKinds
)

var kindNames = [numKinds]string{
	"timeout", "network", "moved", "ask", "tryagain", "clusterdown", "readonly", "loading", "masterdown",
	"oom", "busy", "noreplicas", "auth", "wrongtype", "format", "role", "no_node", "overload", "breaker", "noscript", "misconf", "tls", "other",
}

// String returns the word used in metrics.
func (k ErrorKind) String() string { return kindNames[k] }

// Kinds lists all kinds.
func Kinds() []ErrorKind {
	kinds := make([]ErrorKind, numKinds)
	for i := range kinds {
		kinds[i] = ErrorKind(i)
	}
	return kinds
}

// prefixes maps the first word of an error reply to its kind. The rest of the text differs
// between Redis, Valkey and their versions.
var prefixes = map[string]ErrorKind{
	"MOVED": KindMoved, "ASK": KindAsk, "TRYAGAIN": KindTryAgain, "CLUSTERDOWN": KindClusterDown,
	"READONLY": KindReadOnly, "LOADING": KindLoading, "MASTERDOWN": KindMasterDown, "OOM": KindOOM,
	"BUSY": KindBusy, "NOREPLICAS": KindNoReplicas, "NOAUTH": KindAuth, "WRONGPASS": KindAuth,
	"NOPERM": KindAuth, "WRONGTYPE": KindWrongType, "LGFORMAT": KindFormat,
	"NOSCRIPT": KindNoScript, "MISCONF": KindMisconf,
}

// kindOf classifies an error.
func kindOf(err error) ErrorKind {
	var reply redis.Error
	var network net.Error
	var down *downError
	switch {
	case errors.As(err, &down):
		return down.kind()
	case errors.Is(err, ErrNotMaster):
		return KindRole
	case errors.Is(err, errOverload):
		return KindOverload
	case errors.Is(err, errBreaker):
		return KindBreaker
	case errors.Is(err, errNoNode):
		return KindNoNode
	case errors.Is(err, errState):
		return KindFormat
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout):
		return KindTimeout
	case errors.As(err, &network) && network.Timeout():
		return KindTimeout
	case errors.As(err, &reply):
		return kindOfReply(reply.Error())
	case explainTLS(err) != "":
		return KindTLS
	case errors.Is(err, errCredentials):
		return KindNetwork
	case errors.Is(err, errLogin):
		return KindAuth
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, redis.ErrClosed), errors.Is(err, net.ErrClosed):
		return KindNetwork
	default:
		return KindOther
	}
}

// insideScript lists parts of Redis' error texts for a command that fails inside a script,
// where outside of one it would be redirected or refused.
var insideScript = []struct {
	part string
	kind ErrorKind
}{
	{"non local key", KindMoved},
	{"slot not served", KindClusterDown},
	{"cluster is down", KindClusterDown},
	{"ACL failure", KindAuth},
	{"executing the script can't", KindAuth},
}

// lacksScripts reports whether an error reply is that of a node without EVALSHA or SCRIPT: they were renamed, or it is a proxy that
// has none.
func lacksScripts(text string) bool {
	name, _, _ := strings.Cut(strings.ToUpper(text), ",") // the arguments follow
	return strings.HasPrefix(name, "ERR UNKNOWN COMMAND") && (strings.Contains(name, "EVALSHA") || strings.Contains(name, "SCRIPT"))
}

// kindOfReply classifies an error reply.
func kindOfReply(text string) ErrorKind {
	if _, inner, ok := strings.Cut(text, ": -"); ok { // the wording of Redis 6 for a failure inside a script
		text = inner
	}
	word, rest, _ := strings.Cut(text, " ")
	if word == "ERR" {
		word, _, _ = strings.Cut(rest, " ")
	}
	if k, ok := prefixes[word]; ok {
		return k
	}
	if lacksScripts(text) {
		return KindAuth
	}
	for _, inside := range insideScript {
		if strings.Contains(text, inside.part) {
			return inside.kind
		}
	}
	return KindOther
}

// Forbidden reports whether err means that the user lacks a right or has not logged in.
func Forbidden(err error) bool { return err != nil && kindOf(err) == KindAuth }

// KindOf returns the kind of an error of a store, by its cause: errors of different texts may have one.
func KindOf(err error) ErrorKind { return kindOf(err) }

// needsReload reports whether a failure of this kind may mean that the topology has
// changed.
func (k ErrorKind) needsReload() bool {
	switch k {
	case KindTimeout, KindNetwork, KindMoved, KindAsk, KindClusterDown, KindReadOnly, KindMasterDown, KindRole, KindNoNode:
		return true
	default:
		return false
	}
}

// countsAgainstNode reports whether a failure of this kind counts against the node's
// breaker: a failure of the transport or of the node's state. A reply about one bucket is
// no evidence about the others, and a node that sends an unknown reply does reply.
func (k ErrorKind) countsAgainstNode() bool {
	switch k {
	case KindTimeout, KindNetwork, KindClusterDown, KindReadOnly, KindLoading, KindMasterDown, KindOOM, KindBusy,
		KindNoReplicas, KindAuth, KindTLS, KindRole, KindOverload, KindMisconf:
		return true
	default:
		return false
	}
}

// ofBucket reports whether a failure of this kind concerns the value of one bucket.
func (k ErrorKind) ofBucket() bool { return k == KindWrongType || k == KindFormat }

// counters counts the results of calls.
type counters struct {
	failures    [numKinds]atomic.Int64
	redirects   [numKinds]atomic.Int64
	scriptLoads atomic.Int64
	refundsLost atomic.Int64
	reloads     atomic.Int64
	resets      atomic.Int64
	roleErrors  atomic.Int64
}

// Stats is a snapshot of the counters of a store.
type Stats struct {
	// Undecided counts calls that were left undecided, by Kind.
	Undecided [numKinds]int64
	// Redirects counts calls that were retried because of a redirect, by Kind.
	Redirects [numKinds]int64
	// ScriptLoads counts how often a script had to be loaded into a node.
	ScriptLoads int64
	// RefundsLost counts buckets whose units could not be refunded, or may have been taken
	// by a call whose reply did not arrive.
	RefundsLost int64
	// Reloads counts how often the topology was reloaded.
	Reloads int64
	// Resets counts masters that lost their data.
	Resets int64
	// RoleErrors counts connections that were refused because the node is not a master.
	RoleErrors int64
}
