package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
)

// Contact is a node's reply to ROLE. It is empty if the user may not ask for it.
type Contact struct {
	// Role is master, slave or sentinel.
	Role string
	// Master is the address of a replica's master, if it has one.
	Master string
}

// contact connects to a node and reads its role. The error names the problem if there is no
// Redis at addr that this proxy may use.
func contact(ctx context.Context, addr string, timeout time.Duration) (Contact, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var nd net.Dialer
	conn, err := nd.DialContext(ctx, "tcp", addr)
	if err != nil {
		return Contact{}, err
	}
	defer func() { _ = conn.Close() }()
	// The other half of the time is for finding out why there is no answer.
	_ = conn.SetDeadline(time.Now().Add(timeout / 2))
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	in := resp.NewReader(conn)
	if _, err := conn.Write(resp.AppendCommand(resp.AppendCommand(nil, "PING"), "ROLE")); err != nil {
		return Contact{}, err
	}
	err = in.Await()
	answer := in.Buffered()
	if err == nil && (answer[0] == '+' || answer[0] == '-') {
		return readContact(in)
	}
	switch {
	case speaksTLS(ctx, addr):
		return Contact{}, configError("it speaks TLS, which limitgate cannot do yet: give the address of a port without TLS")
	case err == nil:
		line, _, _ := bytes.Cut(answer[:min(len(answer), 60)], []byte("\r"))
		return Contact{}, configError(fmt.Sprintf("it is no Redis: it answers %q", line))
	case kindOf(err) == KindTimeout:
		return Contact{}, errors.New("it takes connections and does not answer: it hangs, or is no Redis")
	default:
		return Contact{}, errors.New("it ends connections without an answer, so it is no Redis, or not for this machine")
	}
}

// readContact reads the replies to PING and ROLE. Either command may be forbidden to the
// user.
func readContact(in *resp.Reader) (c Contact, err error) {
	_, pinged := in.Strings()
	if pinged != nil && strings.HasPrefix(pinged.Error(), "NOAUTH") {
		return c, configError("it wants a password, which limitgate cannot give yet: let its default user do without one (NOAUTH)")
	}
	role, err := in.Strings()
	if _, refused := resp.AsError(err); err != nil && !refused {
		return c, errors.Join(pinged, err)
	}
	if len(role) == 0 {
		return c, nil
	}
	c.Role = role[0]
	if c.Role == "slave" && len(role) > 2 {
		c.Master = net.JoinHostPort(role[1], role[2])
	}
	return c, nil
}

// fetchFrom fetches the topology from a node that was contacted.
func (s *Store) fetchFrom(ctx context.Context, addr string, c Contact, old *topology) (*topology, error) {
	t, err := s.fetchTopology(ctx, addr, old)
	switch {
	case errors.Is(err, ErrNotMaster) && c.Master != "":
		return nil, configError("it is a replica, and decisions are never read from one: give the address of its master, " + c.Master)
	case errors.Is(err, ErrNotMaster) && c.Role == "sentinel":
		return nil, configError("it is a Sentinel, which keeps no buckets: give the address of the master that it watches")
	default:
		return t, err
	}
}

// speaksTLS reports whether a server completes a TLS handshake. The certificate is not
// verified, because nothing is sent over the connection.
func speaksTLS(ctx context.Context, addr string) bool {
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Explain describes an error for an operator who configures the address of a store.
func Explain(err error) string {
	var name *net.DNSError
	refused, replied := resp.AsError(err)
	switch {
	case errors.Is(err, ErrNotMaster):
		return "it is not a master: a failover may be under way, or the address is that of a replica"
	case replied:
		return string(refused)
	case errors.As(err, &name):
		return "its name is not known here (" + name.Err + "): correct it, or the resolver"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there: start Redis, or correct the address"
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET):
		return "the connection was ended"
	case kindOf(err) == KindTimeout:
		return "it does not answer in time: it is down, overloaded, or a firewall is in the way"
	default:
		return err.Error()
	}
}
