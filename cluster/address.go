package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/resp"
)

// Contact is a node's reply to ROLE. It is empty if the user may not ask for it.
type Contact struct {
	// Role is master, slave or sentinel.
	Role string
	// Master is the address of a replica's master, if it has one.
	Master string
}

const (
	errSpeaksTLS   = configError("it speaks TLS: set --redis-tls, or give the address of a port without TLS")
	errAnswersHTTP = configError("it is no Redis, it answers HTTP: name the port of a Redis")
	errAnswersGRPC = configError("it is no Redis, it answers gRPC: name the port of a Redis")
)

// otherPort has errors for the beginnings of replies that package wrongport sends to clients of Redis: the
// ports of a limitgate that speak another protocol. The replies themselves are advice for those clients.
var otherPort = map[string]error{
	"ERR this port speaks HTTP:": errAnswersHTTP,
	"ERR this port speaks gRPC:": errAnswersGRPC,
	"ERR this port speaks TLS:":  errSpeaksTLS,
}

// alertWait is how long a TLS handshake may turn out to have failed after its end.
const alertWait = 100 * time.Millisecond

// contact connects to a node and reads its role. The error names the problem if there is no
// Redis at addr that this proxy may use.
func (o *Options) contact(ctx context.Context, addr string, timeout time.Duration) (Contact, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	half, cancelHalf := context.WithTimeout(ctx, timeout/2)
	defer cancelHalf()
	conn, err := o.encrypt(half, addr)
	if err != nil && o.TLS != nil && kindOf(err) == KindTimeout && speaksPlainly(ctx, addr) {
		err = tls.RecordHeaderError{Msg: "the node replies without TLS"}
	}
	if err != nil {
		return Contact{}, err
	}
	defer func() { _ = conn.Close() }()
	// The other half of the time is for finding out why there is no answer.
	_ = conn.SetDeadline(time.Now().Add(timeout / 2))
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	in := resp.NewReader(conn)
	if o.TLS != nil {
		// In TLS 1.3 a node refuses a client's certificate after the handshake. A write would
		// make the kernel drop the reason.
		_ = conn.SetReadDeadline(time.Now().Add(min(alertWait, timeout/4)))
		if err := in.Await(); err != nil && kindOf(err) != KindTimeout {
			return Contact{}, err
		}
		_ = conn.SetReadDeadline(time.Now().Add(timeout / 2))
	}
	if _, err := conn.Write(resp.AppendCommand(nil, "PING")); err != nil {
		return Contact{}, err
	}
	err = in.Await()
	answer := in.Buffered()
	if err == nil && (answer[0] == '+' || answer[0] == '-') {
		return o.readContact(ctx, conn, in)
	}
	switch {
	case explainTLS(err) != "":
		return Contact{}, err
	case o.TLS == nil && speaksTLS(ctx, addr):
		return Contact{}, errSpeaksTLS
	case err == nil:
		line, _, _ := bytes.Cut(answer[:min(len(answer), 60)], []byte("\r"))
		if isHTTP(line) {
			return Contact{}, errAnswersHTTP
		}
		return Contact{}, configError(fmt.Sprintf("it is no Redis: it answers %q", line))
	case kindOf(err) == KindTimeout:
		return Contact{}, errors.New("it takes connections and does not answer: it hangs, or is no Redis")
	default:
		return Contact{}, errors.New("it ends connections without an answer, so it is no Redis, or not for this machine")
	}
}

// isHTTP reports whether a server's first bytes are those of HTTP: a status, a page without one, or the
// settings of HTTP/2, as gRPC begins.
func isHTTP(line []byte) bool {
	return bytes.HasPrefix(line, []byte("HTTP/")) || bytes.HasPrefix(line, []byte("<")) || len(line) > 3 && line[0] == 0 && line[1] == 0 && line[3] == 4
}

// readContact reads the reply to PING, logs in and reads the role. Either command may be
// forbidden to the user.
func (o *Options) readContact(ctx context.Context, conn net.Conn, in *resp.Reader) (c Contact, err error) {
	_, pinged := in.Strings()
	reply, refused := resp.AsError(pinged)
	if pinged != nil && !refused {
		return c, pinged
	}
	for begin, wrong := range otherPort {
		if strings.HasPrefix(string(reply), begin) {
			return c, wrong
		}
	}
	if o.Credentials == nil && pinged != nil && strings.HasPrefix(pinged.Error(), "NOAUTH") {
		return c, configError(explainRefusal(pinged))
	}
	if o.Credentials != nil {
		if err := o.logIn(ctx, conn, in); err != nil {
			return c, err
		}
	}
	if _, err := conn.Write(resp.AppendCommand(nil, "ROLE")); err != nil {
		return c, err
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
	case errors.Is(err, ErrNotMaster) && c.Role == "sentinel" && s.opts.Sentinel == "":
		return nil, configError("it is a Sentinel, which keeps no buckets: set --redis-sentinel, or give the address of the master that it watches")
	default:
		return t, err
	}
}

// speaksPlainly reports whether a server replies to a command that is not encrypted. A Redis
// waits for the end of a TLS handshake as for that of a command.
func speaksPlainly(ctx context.Context, addr string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := conn.Write(resp.AppendCommand(nil, "PING")); err != nil {
		return false
	}
	first := make([]byte, 1)
	_, err = conn.Read(first)
	return err == nil && (first[0] == '+' || first[0] == '-')
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
	if errors.As(err, new(explainedError)) || errors.As(err, new(sentinelError)) {
		return err.Error()
	}
	refused, replied := resp.AsError(err)
	if text := explainTLS(err); text != "" {
		return text
	}
	if text := explainRefusal(err); text != "" {
		return text
	}
	switch {
	case errors.Is(err, errLogin) && !replied:
		return err.Error()
	case errors.Is(err, ErrNotMaster):
		return "it is not a master: a failover may be under way, or the address is that of a replica"
	case replied:
		return string(refused)
	case errors.As(err, &name):
		return "its name is not known here (" + name.Err + "): correct it, or the resolver"
	case errors.Is(err, syscall.ECONNREFUSED) && errors.Is(err, errToSentinel):
		return "connection refused: start the Sentinel, or correct the address"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: start Redis, or correct the address"
	case isClosed(err):
		return "the node closed the connection: it may have ended, have no room for a further client (maxclients), or be no Redis"
	case kindOf(err) == KindTimeout:
		return "it does not answer in time: it is down, overloaded, or a firewall is in the way"
	default:
		return err.Error()
	}
}

// isClosed reports whether an error is that of a node which closed the connection.
func isClosed(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE}, func(of error) bool { return errors.Is(err, of) })
}

// IsAway reports whether an error is that of a node which does not answer, and not one that it answers.
func IsAway(err error) bool {
	_, replied := resp.AsError(err)
	kind := kindOf(err)
	return !replied && !isClosed(err) && explainTLS(err) == "" && (kind == KindNetwork || kind == KindTimeout)
}

// OtherNodes is the advice about the only address of a store, where it is that of a node.
const OtherNodes = "if it is a node of a Redis Cluster, name several nodes, separated by commas"

// IsNode reports whether an address has an IP address as its host: a name may lead to any node of a cluster.
func IsNode(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	_, notIP := netip.ParseAddr(host)
	return err == nil && notIP == nil
}

// explainRefusal describes the reply of a node that does not accept the user, or returns "".
func explainRefusal(err error) string {
	var reply redis.Error
	if err == nil || !errors.As(err, &reply) || kindOf(reply) != KindAuth {
		return ""
	}
	text := reply.Error()
	if lacksScripts(text) {
		return "it knows no SCRIPT LOAD or no EVALSHA, by which everything is decided: allow both on every node, or use a Redis that has them"
	}
	switch word, _, _ := strings.Cut(text, " "); word {
	case "NOAUTH":
		return "it requires a password: set --redis-password-file, and --redis-user unless it is that of the default user (NOAUTH)"
	case "WRONGPASS":
		return text + ": check --redis-user and the file of --redis-password-file"
	default:
		return "the user " + lack(text) + "; docs/redis-acl.md has all the rights that it needs (" + text + ")"
	}
}

// lack describes what a user lacks for which a node refuses a command.
func lack(refusal string) string {
	if _, rest, ok := strings.Cut(refusal, "run the '"); ok {
		command, _, _ := strings.Cut(rest, "'")
		return "lacks +" + command + ": add it to the user on every node"
	}
	if strings.Contains(refusal, " access ") {
		return "may not use all keys lg:*: add ~lg:* to the user on every node"
	}
	return "lacks a right that the script needs: limitgate doctor names it"
}

// explainTLS describes a failure of TLS, or returns "".
func explainTLS(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var plain tls.RecordHeaderError
	var alert *net.OpError
	switch {
	case errors.As(err, &authority):
		return "its certificate is signed by an authority that is not known here: name the authority by --redis-tls-ca FILE"
	case errors.As(err, &host) && len(host.Certificate.DNSNames)+len(host.Certificate.IPAddresses) == 0:
		return "its certificate names no host, as TLS does not use the common name any more: make one with subjectAltName=DNS:HOST, or IP:ADDRESS"
	case errors.As(err, &host):
		return "its certificate is not for this name (" + host.Error() + "): use a name of the certificate, or set --redis-tls-server-name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate is not valid at this time (" + invalid.Error() + "): renew it, or set this machine's clock"
	case errors.As(err, &invalid):
		return "its certificate is not valid: " + invalid.Error()
	case errors.As(err, &plain):
		return "it does not speak TLS: give the address of its TLS port, or leave out --redis-tls"
	case errors.As(err, &alert) && alert.Op == "remote error": // as crypto/tls calls alerts
		return "it refuses the TLS connection (" + alert.Error() + "): if it wants a client certificate, set --redis-tls-cert and --redis-tls-key"
	default:
		return ""
	}
}
