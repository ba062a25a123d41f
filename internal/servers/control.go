package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// ControlTimeout bounds one exchange with a server. A server that hangs must
	// not hang the test that made it hang.
	ControlTimeout = 5 * time.Second
	// settleTimeout bounds the wait for replication and for agreement in a cluster, which
	// on a loaded machine takes several times the usual two seconds.
	settleTimeout = 60 * time.Second
)

// Client opens a connection for commands about the server. It sends only the caller's
// commands, and repeats none.
func (n *Node) Client() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     n.Addr,
		Password:                 n.Password,
		Protocol:                 2,
		MaxRetries:               -1,
		DialerRetries:            1,
		DialTimeout:              ControlTimeout,
		ReadTimeout:              ControlTimeout,
		WriteTimeout:             ControlTimeout,
		PoolSize:                 1,
		PipelinePoolSize:         -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Ask sends one command and returns its reply as text.
func (n *Node) Ask(ctx context.Context, words ...any) (string, error) {
	client := n.Client()
	defer func() { _ = client.Close() }()
	reply, err := client.Do(ctx, words...).Result()
	if err != nil {
		return "", fmt.Errorf("ask %s for %v: %w", n.Addr, words[0], err)
	}
	return fmt.Sprint(reply), nil
}

// Fields asks for a reply of name:value lines, as INFO and CLUSTER INFO give.
func (n *Node) Fields(ctx context.Context, words ...any) (map[string]string, error) {
	reply, err := n.Ask(ctx, words...)
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

// Await calls check until it returns nil. After the timeout it returns the last error.
func Await(what string, check func() error) error {
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

// CheckLinkUp returns nil if the node, a replica, reports that its link to its primary is
// up.
func (n *Node) CheckLinkUp(ctx context.Context) error {
	fields, err := n.Fields(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	if fields["role"] != "slave" {
		return errors.New(n.Addr + " is not a replica")
	}
	if fields["master_link_status"] != "up" {
		return errors.New(n.Addr + " has no link to its primary")
	}
	return nil
}
