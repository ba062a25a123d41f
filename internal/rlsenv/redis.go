package rlsenv

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// The names of variables that errors about Redis name.
const (
	urlName      = "REDIS_URL"
	authName     = "REDIS_AUTH"
	sentinelAuth = "REDIS_SENTINEL_AUTH"
)

// redis sets how to connect to Redis.
func (d *draft) redis(p *problems) {
	r := &d.Redis
	r.TLS = p.clientTLS(&d.redisTLS, d.redisUseTLS, tlsNames{
		use: "REDIS_TLS", cert: "REDIS_TLS_CLIENT_CERT", key: "REDIS_TLS_CLIENT_KEY", ca: "REDIS_TLS_CACERT",
	})
	r.User, r.Password = splitAuth(d.auth)
	named := p.given(urlName) || p.given("REDIS_TYPE") || p.given("REDIS_SOCKET_TYPE")
	if err := d.redisNodes(); err != nil && named {
		if !p.given(urlName) && (d.redisSocket != "unix" || d.redisType != single) {
			err = errors.New("it is not set, and its default is a Unix socket; write for example REDIS_URL=redis:6379")
		}
		p.refuse(urlName, err.Error(), "REDIS_TYPE", "REDIS_SOCKET_TYPE")
		return
	}
	if r.User != "" && r.Password == "" {
		name := urlName
		if d.auth != "" {
			name = authName
		}
		p.refuse(name, "a user needs a password; set REDIS_AUTH=user:password, with any password if the user has nopass")
	}
	if r.Sentinel == "" || d.otherAuth == "" {
		return
	}
	if user, password := splitAuth(d.otherAuth); user != r.User || password != r.Password {
		p.refuse(sentinelAuth, "Sentinels get the login of Redis, which is another: give them the user and password of REDIS_AUTH")
	}
}

// splitAuth returns the parts of a password, or of user:password.
func splitAuth(text string) (user, password string) {
	if user, password, found := strings.Cut(text, ":"); found {
		return user, password
	}
	return "", text
}

// redisNodes sets the nodes that REDIS_URL names. Errors do not repeat a part of it.
func (d *draft) redisNodes() error {
	switch r := &d.Redis; {
	case d.redisType == redisCluster:
		r.Cluster = true
		return d.clusterNodes()
	case d.redisType == redisSentinel:
		return d.sentinelNodes()
	case d.redisSocket == "unix":
		return errors.New("REDIS_SOCKET_TYPE is unix, by default, and Limitgate reaches Redis by TCP: set REDIS_SOCKET_TYPE=tcp and REDIS_URL=host:port")
	case strings.Contains(d.redisURL, ","):
		return errors.New("it names several nodes: set REDIS_TYPE=CLUSTER, or name one")
	default:
		n, err := parseNode(d.redisURL)
		if err != nil {
			return err
		}
		r.Addrs, r.DB = []string{n.addr}, n.db
		d.login(n)
		return nil
	}
}

// login sets the user and the password of an address that REDIS_AUTH does not.
func (d *draft) login(n node) {
	if d.Redis.User == "" {
		d.Redis.User = n.user
	}
	if d.Redis.Password == "" {
		d.Redis.Password = n.password
	}
}

func (d *draft) clusterNodes() error {
	var first node
	for i, text := range strings.Split(d.redisURL, ",") {
		n, err := parseNode(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		if n.db != 0 {
			return errors.New("a Redis Cluster has database 0 only; leave out the database")
		}
		if i == 0 {
			first = n
		}
		if n.user != first.user || n.password != first.password {
			return errors.New("its addresses differ in the user or the password: leave them out, and set REDIS_AUTH")
		}
		d.Redis.Addrs = append(d.Redis.Addrs, n.addr)
	}
	d.login(first)
	return nil
}

func (d *draft) sentinelNodes() error {
	master, rest, found := strings.Cut(d.redisURL, ",")
	if d.Redis.Sentinel = strings.TrimSpace(master); !found || d.Redis.Sentinel == "" {
		return errors.New("REDIS_TYPE is SENTINEL; write the name of the master and the Sentinels, for example mymaster,10.0.0.1:26379,10.0.0.2:26379")
	}
	for text := range strings.SplitSeq(rest, ",") {
		n, err := parseNode(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		if n != (node{addr: n.addr}) {
			return errors.New("an address of a Sentinel has no user, password or database; write host:port, and set REDIS_AUTH")
		}
		d.Redis.Addrs = append(d.Redis.Addrs, n.addr)
	}
	return nil
}

// node is an address of Redis, with the parts that its URL may have.
type node struct {
	addr, user, password string
	db                   int
}

var errNode = errors.New("it is not host:port or redis://user:password@host:port/DB; write for example redis:6379")

// parseNode parses host:port or a redis:// URL.
func parseNode(text string) (node, error) {
	if strings.HasPrefix(text, "rediss://") {
		return node{}, errors.New("ratelimit does not read rediss://; write redis:// or host:port, and set REDIS_TLS=true")
	}
	n := node{addr: text}
	if strings.HasPrefix(text, "redis://") {
		u, err := url.Parse(text)
		if err != nil {
			return node{}, errNode // its text would repeat the password
		}
		if n, err = fromURL(u); err != nil {
			return node{}, err
		}
	}
	if !isHostPort(n.addr, 1) || n.addr[0] == ':' {
		return node{}, errNode
	}
	return n, nil
}

// fromURL returns the parts of a URL, which may be parameters of its query too.
func fromURL(u *url.URL) (node, error) {
	query := u.Query()
	n := node{addr: u.Host, user: query.Get("username"), password: query.Get("password")}
	if name := u.User.Username(); name != "" {
		n.user = name
	}
	if password, found := u.User.Password(); found {
		n.password = password
	}
	db := query.Get("db")
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		db = path
	}
	if db == "" {
		return n, nil
	}
	var err error
	if n.db, err = strconv.Atoi(db); err != nil || n.db < 0 {
		return node{}, errors.New("behind the port is not the number of a database; write redis://host:port/3")
	}
	return n, nil
}
