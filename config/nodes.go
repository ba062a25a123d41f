package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Nodes are the nodes of a Redis.
type Nodes struct {
	// Addrs are host:port; none if buckets are kept in memory.
	Addrs []string
	// TLS reports that the addresses are of the form rediss://.
	TLS bool
	// DB is the database of a single Redis.
	DB int
}

// Sentinel is a master and the nodes of its Sentinels.
type Sentinel struct {
	Master string
	Nodes  Nodes
}

// maxDB bounds the number of a database; Redis has 16 unless it is configured.
const maxDB = 1 << 20

// ParseNodes parses the addresses of Redis nodes, separated by commas: host:port, or
// redis://host:port/DB and rediss:// for TLS, without a user and a password. An empty text has
// no addresses. The error describes the right form, and contains no password.
func ParseNodes(text string) (Nodes, error) { return parseNodes(text, redisPort) }

const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// parseNodes parses addresses. A URL without a port has the given one.
func parseNodes(text, port string) (all Nodes, err error) {
	switch {
	case strings.TrimSpace(text) == "":
		return Nodes{}, nil
	case strings.Contains(text, "@"): // a part of it may be a password, and is not repeated
		return Nodes{}, errUserInAddress
	}
	for one := range strings.SplitSeq(text, ",") {
		node, err := parseNode(strings.TrimSpace(one), port)
		if err != nil {
			return Nodes{}, err
		}
		if all.Addrs != nil && (node.TLS != all.TLS || node.DB != all.DB) {
			return Nodes{}, errors.New("the addresses differ in their scheme or database; write the same for all nodes")
		}
		all.TLS, all.DB, all.Addrs = node.TLS, node.DB, append(all.Addrs, node.Addrs...)
	}
	return all, nil
}

// errUserInAddress is returned for text with a user or a password.
var errUserInAddress = errors.New("an address must not contain a user or a password: set --redis-user and --redis-password-file")

// halfScheme matches an address whose scheme is not written whole. A host may have the name redis: its port is a number.
var halfScheme = regexp.MustCompile(`(?i)^(rediss?)(?::[/\\]*|[/\\]+)([\w.-]+:\d+(?:/\d+)?)$`)

// parseNode parses one address.
func parseNode(text, port string) (Nodes, error) {
	if isPort(text, 1) {
		return Nodes{}, fmt.Errorf("%s is a port without its host; write host:port, for example 127.0.0.1:%s", Quote(text), text)
	}
	if m := halfScheme.FindStringSubmatch(text); m != nil && !strings.Contains(text, "://") {
		return Nodes{}, fmt.Errorf("a scheme ends with ://; write %s://%s", strings.ToLower(m[1]), plain(m[2]))
	}
	if text != "" && !strings.ContainsAny(text, `:/\ =`) {
		return Nodes{}, fmt.Errorf("%s has no port; write host:port, for example 127.0.0.1:%s", Quote(text), port)
	}
	if !strings.Contains(text, "://") {
		return Nodes{Addrs: []string{text}}, checkNode(text, port)
	}
	u, err := url.Parse(text)
	if err == nil && u.RawQuery != "" && u.Query().Has("db") {
		return Nodes{}, errors.New("the number of a database stands behind the port: write redis://host:port/3")
	}
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return Nodes{}, errors.New("it is not the URL of a Redis; write host:port, redis://host:port, or rediss://host:port for TLS")
	}
	n := Nodes{Addrs: []string{u.Host}, TLS: u.Scheme == "rediss"}
	if u.Port() == "" {
		n.Addrs[0] = net.JoinHostPort(u.Hostname(), port)
	}
	if db := strings.TrimPrefix(u.Path, "/"); db != "" {
		if n.DB, err = strconv.Atoi(db); err != nil || n.DB < 0 || n.DB > maxDB || db != strconv.Itoa(n.DB) {
			return Nodes{}, errors.New("behind the port is not the number of a database; write redis://host:port/3")
		}
	}
	return n, checkNode(n.Addrs[0], port)
}

// checkNode checks the address of a Redis node, whose port is usual in examples.
func checkNode(text, usual string) error {
	if strings.ContainsAny(text, " =;") { // words of another program's command line, perhaps with a password
		return errors.New("an address holds no blank, equals sign or semicolon; write host:port,host:port")
	}
	if text == "" {
		return errors.New("an address is missing between commas; write host:port,host:port")
	}
	if err := checkAddress(text, 1, usual); err != nil {
		return err
	}
	if host, _, _ := net.SplitHostPort(text); host == "" {
		return fmt.Errorf("%s has no host; write host:port, for example 127.0.0.1:%s", Quote(text), usual)
	}
	return nil
}
