package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// controlTimeout bounds one exchange with a server. A server that hangs must
	// not hang the test that made it hang.
	controlTimeout = 5 * time.Second
	// settleTimeout bounds the wait for replication and for a cluster to agree,
	// which on a loaded machine takes several times the two seconds it should.
	settleTimeout = 60 * time.Second
)

// control opens a connection for the harness's own questions. It sends nothing
// but what it is asked to, and repeats nothing.
func (n *Node) control() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     n.Addr,
		Password:                 n.password,
		Protocol:                 2,
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              controlTimeout,
		ReadTimeout:              controlTimeout,
		WriteTimeout:             controlTimeout,
		PoolSize:                 1,
		PipelinePoolSize:         -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// ask sends one command and returns its reply as text.
func (n *Node) ask(ctx context.Context, words ...any) (string, error) {
	client := n.control()
	defer func() { _ = client.Close() }()
	reply, err := client.Do(ctx, words...).Result()
	if err != nil {
		return "", fmt.Errorf("ask %s for %v: %w", n.Addr, words[0], err)
	}
	return fmt.Sprint(reply), nil
}

// mustAsk is ask for servers that are known to answer.
func (n *Node) mustAsk(tb testing.TB, words ...any) string {
	tb.Helper()
	reply, err := n.ask(lasting(tb), words...)
	if err != nil {
		tb.Fatal(err)
	}
	return reply
}

// fields asks for a reply of name:value lines, as INFO and CLUSTER INFO give.
func (n *Node) fields(ctx context.Context, words ...any) (map[string]string, error) {
	reply, err := n.ask(ctx, words...)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(reply) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ":")
		if found {
			fields[name] = value
		}
	}
	return fields, nil
}

// lasting is the test's context without its end, which comes before the test's
// cleanups: they too may ask servers. Each question has a time limit of its own.
func lasting(tb testing.TB) context.Context {
	return context.WithoutCancel(tb.Context())
}

// await calls check until it returns nil. When the time is over it returns the
// last reason why not.
func await(what string, check func() error) error {
	deadline := time.Now().Add(settleTimeout)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait %v for %s: %w", settleTimeout, what, err)
		}
		time.Sleep(pollInterval)
	}
}
