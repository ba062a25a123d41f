package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// receiver is the kind of a receiver that the proxy sends data to by HTTP, as errors about its URL have it.
type receiver struct {
	kind    string // of the receiver, such as an endpoint
	data    string // that it receives, in the plural
	example string // a good URL
	local   string // one of this machine; empty if http may go to any host
	secret  string // where the secret is that proves the sender
}

// parse returns the URL of a receiver. Errors do not repeat it, since a part of it may be a password.
func (r *receiver) parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err == nil && u.User != nil, err != nil && strings.Contains(text, "@"):
		return nil, fmt.Errorf("a URL of %s must not contain a user or a password: %s", r.data, r.secret)
	case err != nil || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("it is not the URL of %s; write for example %s", r.kind, r.example)
	case u.Port() != "" && !isPort(u.Port(), 1):
		return nil, fmt.Errorf("%s is not a port; it must be a number from 1 to %d", Quote(u.Port()), math.MaxUint16)
	case r.local != "" && u.Scheme == "http" && !isLoopback(net.JoinHostPort(u.Hostname(), u.Port())):
		return nil, errors.New(r.data + " would cross the network unencrypted; write https, or the http URL of this machine, for example " + r.local)
	}
	return u, nil
}

// isPort reports whether a text is the number of a port, of at least least.
func isPort(text string, least uint64) bool {
	n, err := strconv.ParseUint(text, 10, 16) // which rejects signs, unlike the resolver of net
	return err == nil && n >= least
}
