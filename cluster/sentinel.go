package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
)

// errToSentinel is part of the error of a connection to a Sentinel.
var errToSentinel = errors.New("connect to Sentinel")

// masterOf asks a Sentinel for the address of the master of Options.Sentinel. It logs in only
// if the Sentinel requires that. See
// https://redis.io/docs/latest/develop/reference/sentinel-clients/.
func (o *Options) masterOf(ctx context.Context, sentinel string) (addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.DialTimeout+o.IOTimeout)
	defer cancel()
	conn, err := o.encrypt(ctx, sentinel)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errToSentinel, err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	in := resp.NewReader(conn)
	words, err := o.askSentinel(conn, in)
	if reply, ok := resp.AsError(err); ok && strings.HasPrefix(string(reply), "NOAUTH") && o.Credentials != nil {
		if err = o.logIn(ctx, conn, in); err == nil {
			words, err = o.askSentinel(conn, in)
		}
	}
	reply, replied := resp.AsError(err)
	switch {
	case replied && strings.Contains(string(reply), "unknown command"):
		return "", configError("it is no Sentinel: give the addresses of Sentinels, or leave out --redis-sentinel")
	case replied && kindOf(err) == KindAuth:
		return "", sentinelError{err}
	case err != nil:
		return "", fmt.Errorf("ask Sentinel: %w", err)
	case len(words) == 2 && !isAddress(words[0], words[1]):
		return "", fmt.Errorf("ask Sentinel: %w: the master is at %.64q, port %.16q", resp.ErrReply, words[0], words[1])
	case len(words) != 2:
		return "", configError(fmt.Sprintf("the Sentinel does not know a master named %q: SENTINEL MASTERS lists those it knows", o.Sentinel))
	}
	return net.JoinHostPort(words[0], words[1]), nil
}

// isAddress reports whether a host and a port can be those of another node.
func isAddress(host, port string) bool {
	n, err := strconv.Atoi(port)
	ip, notIP := netip.ParseAddr(host)
	return err == nil && n > 0 && n < 1<<16 && host != "" && (notIP != nil || !ip.IsUnspecified())
}

// askSentinel reads the host and the port of the master. A Sentinel that does not know the
// name replies no words.
func (o *Options) askSentinel(conn net.Conn, in *resp.Reader) ([]string, error) {
	if _, err := conn.Write(resp.AppendCommand(nil, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", o.Sentinel)); err != nil {
		return nil, err
	}
	return in.Strings()
}

// contactMaster contacts the node at addr, or the master that the Sentinel at addr names.
func (o *Options) contactMaster(ctx context.Context, addr string, timeout time.Duration) (Contact, error) {
	if o.Sentinel == "" {
		return o.contact(ctx, addr, timeout)
	}
	master, err := o.masterOf(ctx, addr)
	if err != nil {
		return Contact{}, err
	}
	c, err := o.contact(ctx, master, timeout)
	if err != nil {
		return c, fmt.Errorf("the master %s: %w", master, explainedError{err})
	}
	return c, nil
}

// explainedError is the error of a node, in words for an operator.
type explainedError struct{ err error }

func (e explainedError) Error() string { return Explain(e.err) }

func (e explainedError) Unwrap() error { return e.err }

// explained returns the error of a node that refuses the user, or is none of Redis, in words for an operator, and others
// as they are.
func explained(err error) error {
	if isLimitgate(err) {
		return errLimitgate
	}
	if explainRefusal(err) == "" {
		return err
	}
	return explainedError{err}
}

// sentinelError is the error of a Sentinel that refuses the user, in words for an operator.
type sentinelError struct{ err error }

func (e sentinelError) Error() string {
	reply, _ := resp.AsError(e.err)
	switch word, _, _ := strings.Cut(string(reply), " "); word {
	case "NOAUTH":
		return "the Sentinel requires a login, and gets that of Redis: set --redis-password-file (NOAUTH)"
	case "NOPERM":
		return "the user may not ask the Sentinel: add +sentinel|get-master-addr-by-name to it there (NOPERM)"
	default:
		return "the Sentinel requires a login, and refuses that of Redis: give it the same user and password (" + word + ")"
	}
}

func (e sentinelError) Unwrap() error { return e.err }
