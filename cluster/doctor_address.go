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
	"sync"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
)

// contactAll contacts every address concurrently. It fetches the topology from those that
// answer, as a Store does from the first of them.
func (in *inspection) contactAll(ctx context.Context) {
	found := make([]AddressReport, len(in.opts.Addrs))
	in.report.Addresses = found
	var wg sync.WaitGroup
	for i, addr := range in.opts.Addrs {
		wg.Go(func() {
			found[i] = AddressReport{Addr: addr}
			if err := found[i].contact(ctx, in.opts.DialTimeout); err != nil {
				found[i].Error = explain(err)
			}
		})
	}
	wg.Wait()
	for i := range found {
		if found[i].Error == "" {
			if err := in.learnFrom(ctx, &found[i]); err != nil {
				found[i].Error = explain(err)
			}
		}
	}
}

// learnFrom fetches the topology from a node that answers.
func (in *inspection) learnFrom(ctx context.Context, a *AddressReport) error {
	t, err := in.store.fetchTopology(ctx, a.Addr, in.top)
	switch {
	case errors.Is(err, ErrNotMaster) && a.Master != "":
		return configError("it is a replica, and decisions are never read from one: give the address of its master, " + a.Master)
	case errors.Is(err, ErrNotMaster) && a.Role == "sentinel":
		return configError("it is a Sentinel, which keeps no buckets: give the address of the master that it watches")
	case err != nil:
		return err
	}
	if !t.cluster {
		info, err := t.single.client.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		a.run = infoField(info, "run_id")
	}
	if in.top == nil {
		in.top, in.first = t, a
		return nil
	}
	shared := false
	for addr, n := range t.nodes {
		if in.top.nodes[addr] == n {
			shared = true
		} else {
			_ = n.client.Close()
		}
	}
	a.otherStore = a.run != in.first.run || t.cluster && !shared
	return nil
}

// contact connects to a node and reads its role.
func (a *AddressReport) contact(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var nd net.Dialer
	conn, err := nd.DialContext(ctx, "tcp", a.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// The other half of the time is for finding out why there is no answer.
	_ = conn.SetDeadline(time.Now().Add(timeout / 2))
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	in := resp.NewReader(conn)
	if _, err := conn.Write(resp.AppendCommand(resp.AppendCommand(nil, "PING"), "ROLE")); err != nil {
		return err
	}
	err = in.Await()
	answer := in.Buffered()
	if err == nil && (answer[0] == '+' || answer[0] == '-') {
		return a.readAnswers(in)
	}
	switch {
	case speaksTLS(ctx, a.Addr):
		return configError("it speaks TLS, which limitgate cannot do yet: give the address of a port without TLS")
	case err == nil:
		line, _, _ := bytes.Cut(answer[:min(len(answer), 60)], []byte("\r"))
		return configError(fmt.Sprintf("it is no Redis: it answers %q", line))
	case kindOf(err) == KindTimeout:
		return errors.New("it takes connections and does not answer: it hangs, or is no Redis")
	default:
		return errors.New("it ends connections without an answer, so it is no Redis, or not for this machine")
	}
}

// readAnswers reads the replies to PING and ROLE. Either command may be forbidden to the
// user.
func (a *AddressReport) readAnswers(in *resp.Reader) error {
	_, pinged := in.Strings()
	if pinged != nil && strings.HasPrefix(pinged.Error(), "NOAUTH") {
		return configError("it wants a password, which limitgate cannot give yet: let its default user do without one (NOAUTH)")
	}
	role, err := in.Strings()
	if _, refused := resp.AsError(err); err != nil && !refused {
		return errors.Join(pinged, err)
	}
	if len(role) == 0 {
		return nil
	}
	a.Role = role[0]
	if a.Role == "slave" && len(role) > 2 {
		a.Master = net.JoinHostPort(role[1], role[2])
	}
	return nil
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

// explain describes an error for an operator who configures the address of a store.
func explain(err error) string {
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
