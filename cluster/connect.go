package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
)

// Credentials supply the user and the password of connections. It is safe for concurrent use.
type Credentials interface {
	// Credentials returns the user and the password of a new connection. An empty user is
	// the default user.
	Credentials(ctx context.Context) (user, password string, err error)
	// Refused is called when a node refused a password. It reports whether Credentials may
	// return another one now.
	Refused(ctx context.Context, password string) (retry bool)
}

// maxLogins bounds the passwords that one connection tries: the one before a rotation, the
// present one, and the one before that was read again.
const maxLogins = 3

// errCredentials is the error of credentials that cannot be had now. It is no fault of the
// node, and may pass: a source of credentials may be out of reach.
var errCredentials = errors.New("get credentials")

// errLogin is the error of a node that did not accept the credentials.
var errLogin = errors.New("log in")

// connect opens a connection: it encrypts, logs in and selects the database, as far as the
// options say so. Every connection that decides, and those of go-redis, are opened by it.
// Sentinels and the diagnosis of an address use encrypt and logIn alone.
func (o *Options) connect(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
	defer cancel()
	conn, err := o.encrypt(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = o.prepare(ctx, conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// encrypt opens a connection of TCP, with TLS above it if the options say so.
func (o *Options) encrypt(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil || o.TLS == nil {
		return conn, err
	}
	host, _, _ := net.SplitHostPort(addr)
	config, err := o.TLS(host)
	if err == nil {
		encrypted := tls.Client(&unblockedConn{Conn: conn, timeout: o.IOTimeout}, config)
		if err = encrypted.HandshakeContext(ctx); err == nil {
			return encrypted, nil
		}
		err = fmt.Errorf("TLS handshake: %w", err)
	}
	_ = conn.Close()
	return nil, err
}

// prepare logs in and selects the database.
func (o *Options) prepare(ctx context.Context, conn net.Conn) error {
	in := resp.NewReader(conn)
	if o.Credentials != nil {
		if err := o.logIn(ctx, conn, in); err != nil {
			return err
		}
	}
	if o.DB == 0 {
		return nil
	}
	if _, err := conn.Write(resp.AppendCommand(nil, "SELECT", strconv.Itoa(o.DB))); err != nil {
		return err
	}
	_, err := in.Strings()
	reply, replied := resp.AsError(err)
	switch {
	case replied && strings.Contains(string(reply), "cluster mode"):
		return errClusterDB
	case replied && strings.Contains(string(reply), "DB index is out of range"):
		return errNoDatabase
	case err != nil:
		return fmt.Errorf("select database %d: %w", o.DB, err)
	}
	return nil
}

// errNoDatabase is returned for a node that does not have the database Options.DB.
const errNoDatabase = configError("it has no database of that number: write a lower one behind redis://HOST:PORT/")

// errClusterDB is returned for a node of a cluster if Options.DB is set.
const errClusterDB = configError("a cluster has database 0 only: leave out the database")

// logIn sends AUTH, with other credentials if a node refuses the first ones and there may be
// others.
func (o *Options) logIn(ctx context.Context, conn net.Conn, in *resp.Reader) error {
	var refused error
	for range maxLogins {
		user, password, err := o.Credentials.Credentials(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", errCredentials, err)
		}
		if refused, err = auth(conn, in, user, password); err != nil {
			return err
		}
		if refused == nil {
			return nil
		}
		if kindOf(refused) != KindAuth || !o.Credentials.Refused(ctx, password) {
			break
		}
	}
	return fmt.Errorf("%w: %w", errLogin, refused)
}

// auth sends AUTH and reads the reply. The error of a node never contains the password.
func auth(conn net.Conn, in *resp.Reader, user, password string) (refused, err error) {
	words := []string{"AUTH", user, password}
	if user == "" {
		words = []string{"AUTH", password}
	}
	if _, err := conn.Write(resp.AppendCommand(nil, words...)); err != nil {
		return nil, err
	}
	_, err = in.Strings()
	reply, ok := resp.AsError(err)
	switch {
	case !ok:
		return nil, err
	case kindOf(reply) == KindAuth || kindOf(reply) == KindLoading: // the rest may repeat the password
		word, _, _ := strings.Cut(string(reply), " ")
		return resp.Error(word + " the node refused the user or the password"), nil
	default:
		return errNoUsers, nil
	}
}

// errNoUsers is returned for a node that refuses AUTH itself.
const errNoUsers = configError("the node wants no password, or does not know AUTH with a user: leave out --redis-password-file and --redis-user, or give that user a password there")

// connAge returns the age at which a connection is replaced, or 0. It is a random one from
// minConnAge to MaxConnAge, so that connections that were opened together are replaced apart.
func (o *Options) connAge() time.Duration {
	if o.MaxConnAge <= 0 {
		return 0
	}
	return o.minConnAge() + rand.N(o.MaxConnAge-o.minConnAge()+1)
}

// minConnAge is 6 h of the 11 h that suit tokens of IAM: AWS closes a connection after 12 h.
func (o *Options) minConnAge() time.Duration { return o.MaxConnAge * 6 / 11 }
