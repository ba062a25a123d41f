package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/resp"
)

// TestKindOfNoConnection checks that a call without a connection counts as a network
// failure, or as the reason why the node refuses connections, and never as one that may
// have been executed.
func TestKindOfNoConnection(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  ErrorKind
	}{
		{io.EOF, KindNetwork},
		{context.DeadlineExceeded, KindNetwork},
		{fmt.Errorf("handshake: %w", resp.Error("NOAUTH Authentication required.")), KindAuth},
		{fmt.Errorf("handshake: %w", resp.Error("LOADING Redis is loading the dataset in memory")), KindLoading},
		{fmt.Errorf("handshake: %w, its role is slave", ErrNotMaster), KindRole},
	} {
		if got := kindOf(&downError{c.cause}); got != c.want {
			t.Errorf("%v: %s, want %s", c.cause, got, c.want)
		}
	}
}

// TestExplainRefusal checks the sentences for what Redis and Valkey reply to a user that has not
// logged in or lacks a right.
func TestExplainRefusal(t *testing.T) {
	const all = "; docs/redis-acl.md has all the rights that it needs ("
	for reply, want := range map[string]string{
		"ERR unknown command 'EVALSHA', with args beginning with: 'ae47' '1' ":                      "it knows no SCRIPT LOAD or no EVALSHA, by which everything is decided: allow both on every node, or use a Redis that has them",
		"ERR unknown command `script`, with args beginning with: `LOAD`, `local x`, ":               "it knows no SCRIPT LOAD or no EVALSHA, by which everything is decided: allow both on every node, or use a Redis that has them",
		"ERR unknown command 'FOO', with args beginning with: 'SCRIPT' ":                            "",
		"NOAUTH Authentication required.":                                                           "it requires a password: set --redis-password-file, and --redis-user unless it is that of the default user (NOAUTH)",
		"WRONGPASS invalid username-password pair or user is disabled.":                             "WRONGPASS invalid username-password pair or user is disabled.: check --redis-user and the file of --redis-password-file",
		"NOPERM this user has no permissions to run the 'set' command or its subcommand":            "the user lacks +set: add it to the user on every node" + all,
		"NOPERM this user has no permissions to run the 'script|load' command":                      "the user lacks +script|load: add it to the user on every node" + all,
		"NOPERM User limitgate has no permissions to run the 'set' command":                         "the user lacks +set: add it to the user on every node" + all,
		"NOPERM this user has no permissions to access one of the keys used as arguments":           "the user may not use all keys lg:*: add ~lg:* to the user on every node" + all,
		"NOPERM No permissions to access a key":                                                     "the user may not use all keys lg:*: add ~lg:* to the user on every node" + all,
		"ERR The user executing the script can't run this command or subcommand script: 1, on @x:1": "the user lacks a right that the script needs: limitgate doctor names it" + all,
		"LOADING Redis is loading the dataset in memory":                                            "LOADING Redis is loading the dataset in memory",
	} {
		if got := Explain(fmt.Errorf("get: %w", resp.Error(reply))); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", reply, got)
		}
	}
}

// TestUnservedSlot: the error of a key without a master says so, in a cluster that is not complete
// and in a store that has not been reached. It is counted as before.
func TestUnservedSlot(t *testing.T) {
	for text, nodes := range map[string]map[string]*node{
		"no master serves hash slot 12182 yet: redis-cli cluster info": {"127.0.0.1:1": nil},
		"no master of the store is known":                              {},
	} {
		_, err := (&topology{nodes: nodes}).ownerOf("foo")
		if err == nil || !strings.HasPrefix(err.Error(), text) || kindOf(err) != KindNoNode {
			t.Errorf("%v, want %s", err, text)
		}
	}
}
