package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/tlsfiles"
	"github.com/limitgate/limitgate/limit"
)

// clientFlags are the flags of a command that asks a running limitgate.
type clientFlags struct {
	tls          bool
	files        tlsfiles.ClientOptions
	addrFlag     string // the flag of the address; empty is addr
	listen       string // the value of LIMITGATE_LISTEN, which is the address without the flag; "" if it has none
	user         string
	passwordFile string
}

// clientFlagNames returns the names of the flags that clientFlags defines.
func clientFlagNames() (names []string) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	new(clientFlags).define(fs)
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// define defines the flags of the connection, the user and the password.
func (f *clientFlags) define(fs *flag.FlagSet) {
	f.defineTLS(fs)
	fs.StringVar(&f.user, "user", "", "the `name` to authenticate as; empty is the default user")
	fs.StringVar(&f.passwordFile, "password-file", "", "the `file` of the user's password")
}

// defineTLS defines the flags of the connection alone.
func (f *clientFlags) defineTLS(fs *flag.FlagSet) {
	fs.BoolVar(&f.tls, "tls", false, "connect by TLS")
	fs.StringVar(&f.files.CA, "tls-ca", "", "the `file` of the authorities that sign its certificate; empty is the system's")
	fs.StringVar(&f.files.ServerName, "tls-server-name", "", "the `name` in its certificate; empty is the host of the address")
	fs.StringVar(&f.files.Cert, "tls-cert", "", "the `file` of a certificate for this client")
	fs.StringVar(&f.files.Key, "tls-key", "", "the `file` of its key")
}

// check returns a mistake in the address, the time to wait or the user.
func (f *clientFlags) check(addr string, timeout time.Duration) error {
	name := "--" + cmp.Or(f.addrFlag, "addr")
	if f.listen != "" && addr == f.listen {
		name = "env LIMITGATE_LISTEN:"
	}
	if err := checkAddrOf(name, addr, defaultAddr); err != nil {
		return err
	}
	if f.passwordFile == "" && f.user != "" {
		return config.Mistake("a user needs a password: set --password-file")
	}
	return checkBetween("timeout", timeout, time.Millisecond, mostWait)
}

// checkAddr returns a mistake if the value of a flag is no address.
func checkAddr(flag, addr, example string) error { return checkAddrOf("--"+flag, addr, example) }

// checkAddrOf does the same for a setting by the name that the mistake has.
func checkAddrOf(name, addr, example string) error {
	_, port, err := net.SplitHostPort(addr)
	_, badPort := strconv.ParseUint(port, 10, 16)
	of, isURL := strings.CutPrefix(strings.TrimRight(addr, "/"), "http://")
	if _, port, err := net.SplitHostPort(of); isURL && err == nil {
		if _, bad := strconv.ParseUint(port, 10, 16); bad == nil && !strings.ContainsAny(of, "/@") {
			example = of
		}
	}
	switch {
	case addr == "":
		return config.Mistake(name + " is empty: write HOST:PORT")
	case err == nil && badPort == nil:
		return nil
	case isPort(addr):
		return config.Mistake(name + " " + config.Quote(addr) + " is a port without its host: write HOST:PORT, for example 127.0.0.1:" + addr)
	case !strings.Contains(addr, ":"), err == nil && port == "":
		return config.Mistake(name + " " + config.Quote(addr) + " has no port: write HOST:PORT, for example " + example)
	}
	if err == nil {
		return config.Mistake(name + " " + config.Quote(addr) + " has the port " + config.Quote(port) + ", which is no number from 0 to 65535: write HOST:PORT, for example " + example)
	}
	return config.Mistake(name + " " + config.Quote(addr) + " is no address: write HOST:PORT, for example " + example)
}

// isPort reports whether a value is the number of a port alone.
func isPort(value string) bool {
	_, err := strconv.ParseUint(value, 10, 16)
	return err == nil && value[0] != '0'
}

// mostWait is the longest that a command waits for an answer.
const mostWait = time.Hour

// checkBetween returns a mistake if a time is out of bounds.
func checkBetween(flag string, d, least, most time.Duration) error {
	if d < least || d > most {
		return config.Mistake(fmt.Sprintf("--%s is %s: want %s to %s", flag, config.ShowDuration(d), config.ShowDuration(least), config.ShowDuration(most)))
	}
	return nil
}

// newClient returns a client of a limitgate that never retries. Protocol is the version of RESP.
func (f *clientFlags) newClient(addr string, timeout time.Duration, protocol int) (*redis.Client, error) {
	if err := f.check(addr, timeout); err != nil {
		return nil, err
	}
	o := clientOptions(addr, timeout)
	o.Protocol = protocol
	var err error
	if o.TLSConfig, err = f.tlsConfig(addr); err != nil {
		return nil, err
	}
	if f.passwordFile != "" {
		o.Username = f.user
		if o.Password, err = config.ReadPassword(f.passwordFile); err != nil {
			return nil, err
		}
	}
	dialRefused(o)
	return redis.NewClient(o), nil
}

// ignoresPassword reports whether the client has a password of the default user, and the limitgate asks
// for none: HELLO takes any password then, and AUTH does not.
func ignoresPassword(ctx context.Context, client *redis.Client) bool {
	o := client.Options()
	if o.Password == "" || o.Username != "" {
		return false
	}
	err := client.Do(ctx, "AUTH", o.Password).Err()
	return err != nil && strings.Contains(err.Error(), "without any password configured")
}

// tlsConfig returns the configuration of TLS, or nil for connections that are not encrypted.
func (f *clientFlags) tlsConfig(addr string) (*tls.Config, error) {
	if !f.tls {
		if f.files.CA != "" || f.files.ServerName != "" || f.files.Cert != "" || f.files.Key != "" {
			return nil, config.Mistake("certificates are for TLS: set --tls")
		}
		return nil, nil
	}
	switch {
	case f.files.Cert != "" && f.files.Key == "":
		return nil, config.Mistake("a certificate needs its key: set --tls-key")
	case f.files.Cert == "" && f.files.Key != "":
		return nil, config.Mistake("a key needs its certificate: set --tls-cert")
	}
	c, err := tlsfiles.NewClient(f.files)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(addr)
	return c.Config(host)
}

// defaultAddr is the address of the limitgate that a command asks, unless --addr or the variable of --listen names
// another.
const defaultAddr = "127.0.0.1:6380"

// defineAddr defines the flag --addr.
func (f *clientFlags) defineAddr(env *environment, fs *flag.FlagSet, addr *string) {
	f.listen = env.lookup("LIMITGATE_LISTEN")
	fs.StringVar(addr, "addr", cmp.Or(f.listen, defaultAddr), "`address` of the limitgate to ask; otherwise that of LIMITGATE_LISTEN, if set")
}

// clientOptions returns the options of a client of a limitgate that never retries.
func clientOptions(addr string, timeout time.Duration) *redis.Options {
	return &redis.Options{
		Addr: addr, Protocol: 2, MaxRetries: -1, DialerRetries: 1, PoolSize: 1,
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, ContextTimeoutEnabled: true,
		DisableIdentity: true, PipelinePoolSize: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// lacks returns the rule that a user lacks whose command was refused.
func lacks(err error) string {
	_, tenant, found := strings.Cut(err.Error(), " tenant '")
	tenant = strings.TrimSuffix(tenant, "'")
	_, groups, needs := strings.Cut(err.Error(), "it needs ")
	switch {
	case found:
		return "this user lacks ~" + tenant
	case needs:
		return "this user lacks " + groups
	}
	return "lists of all tenants need +@read ~*"
}

// explainDial adds advice to an error of a connection that could not be used, to the address of --addr.
func explainDial(addr string, err error) error { return explainDialOf("addr", addr, err) }

// explainDialOf does the same for the address of a flag.
func explainDialOf(flag, addr string, err error) error {
	var network *net.OpError
	var refused *refusal
	if advised := explainTLS(addr, err); advised != nil {
		return advised
	}
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w (the answer of %s, which closed the connection)", err, addr)
	case strings.Contains(err.Error(), "HTTP/1."):
		return fmt.Errorf("%w (%s answers HTTP: the address is that of --listen, not of --admin or --http)", err, addr)
	case errors.As(err, &network) && network.Op == "dial" && addr == defaultAddr:
		return fmt.Errorf("%w (is limitgate serve running at %s? --%s names another address)", err, addr, flag)
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("%w (is limitgate serve running at %s?)", err, addr)
	case strings.Contains(err.Error(), "invalid reply"), strings.Contains(err.Error(), "can't parse"):
		return fmt.Errorf("%w (%s does not speak the protocol of Redis: name the --listen address of a limitgate)", err, addr)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w (%s takes connections and does not answer in time: is that the --listen address of a limitgate?)", err, addr)
	case redis.HasErrorPrefix(err, "unknown command"), redis.HasErrorPrefix(err, "DENIED"):
		return fmt.Errorf("%w (%s is a Redis: name the address of a limitgate that serves it, started by limitgate serve --redis %[2]s)", err, addr)
	case redis.HasErrorPrefix(err, "WRONGPASS") && strings.Contains(err.Error(), "has no users"):
		return fmt.Errorf("%w (leave out --user and --password-file)", err)
	case redis.HasErrorPrefix(err, "WRONGPASS") && strings.Contains(err.Error(), "the token is refused"):
		return err
	case redis.HasErrorPrefix(err, "WRONGPASS"):
		return fmt.Errorf("%w (its file of users has no such user with this password: check --user, which is default unless given, and --password-file)", err)
	case redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(err.Error(), "': its token is for "):
		return fmt.Errorf("%w (check that one, or - for it, or get a token for the other)", err)
	case redis.HasErrorPrefix(err, "NOPERM"):
		return fmt.Errorf("%w (%s; rights are in the file of users of that limitgate: add them there, or name another user by --user)", err, lacks(err))
	case redis.HasErrorPrefix(err, "NOAUTH"):
		return fmt.Errorf("%w (name a user by --user, and the file of its password by --password-file)", err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w (%s closed the connection: if it speaks TLS, say --tls)", err, addr)
	}
	return err
}

// explainTLS adds advice to an error of TLS, and returns nil for others.
func explainTLS(addr string, err error) error {
	var host x509.HostnameError
	var refused *refusal
	switch {
	case errors.As(err, &refused) && strings.Contains(refused.text, "speaks TLS"):
		return fmt.Errorf("%w (the answer of %s: say --tls)", err, addr)
	case errors.As(err, new(tls.RecordHeaderError)), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%w (%s does not speak TLS: leave out --tls)", err, addr)
	case errors.As(err, &host) && len(host.Certificate.DNSNames)+len(host.Certificate.IPAddresses) == 0:
		return fmt.Errorf("%w (its certificate names no host, as TLS does not use the common name any more: make one with subjectAltName=DNS:HOST, or IP:ADDRESS)", err)
	case errors.As(err, &host):
		name := "HOST"
		if names := host.Certificate.DNSNames; len(names) > 0 {
			name = table.Printable(limit.Shorten(names[0]))
		}
		return fmt.Errorf("%w (name a host of the certificate by --tls-server-name %s, and the file of its authority by --tls-ca unless this machine trusts it)", err, name)
	case strings.Contains(err.Error(), "tls: certificate required"):
		return fmt.Errorf("%w (it wants a certificate of an authority of its --tls-client-ca: name one by --tls-cert and --tls-key)", err)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Errorf("the certificate of %s is signed by an authority that is not known here: name the file of that by --tls-ca", addr)
	}
	return nil
}
