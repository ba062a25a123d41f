package rlsenv

import (
	"reflect"
	"strings"
	"testing"
)

func TestRedis(t *testing.T) {
	for _, test := range []struct {
		environ string // separated by blanks
		want    Redis
	}{
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379", Redis{Addrs: []string{"redis:6379"}}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=[::1]:6379 REDIS_AUTH=p", Redis{Addrs: []string{"[::1]:6379"}, Password: "p"}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379 REDIS_AUTH=:p:q", Redis{Addrs: []string{"redis:6379"}, Password: "p:q"}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://u:p%40q@h:1/2", Redis{Addrs: []string{"h:1"}, User: "u", Password: "p@q", DB: 2}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://:p@h:1/", Redis{Addrs: []string{"h:1"}, Password: "p"}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://h:1?username=u&password=p&db=2", Redis{Addrs: []string{"h:1"}, User: "u", Password: "p", DB: 2}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://u:p@h:1/3?username=a&password=b&db=2", Redis{Addrs: []string{"h:1"}, User: "u", Password: "p", DB: 3}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://u@h:1 REDIS_AUTH=p", Redis{Addrs: []string{"h:1"}, User: "u", Password: "p"}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://u:p@h:1 REDIS_AUTH=v:q", Redis{Addrs: []string{"h:1"}, User: "v", Password: "q"}},
		{"REDIS_TYPE=Cluster REDIS_URL=a:1,b:2", Redis{Addrs: []string{"a:1", "b:2"}, Cluster: true}},
		{"REDIS_TYPE=CLUSTER REDIS_URL=redis://u:p@a:1,redis://u:p@b:2", Redis{Addrs: []string{"a:1", "b:2"}, Cluster: true, User: "u", Password: "p"}},
		{"REDIS_TYPE=cluster REDIS_URL=a:1 REDIS_SOCKET_TYPE=unix", Redis{Addrs: []string{"a:1"}, Cluster: true}},
		{"REDIS_TYPE=SENTINEL REDIS_URL=m,a:1,b:2 REDIS_AUTH=p", Redis{Addrs: []string{"a:1", "b:2"}, Sentinel: "m", Password: "p"}},
		{"REDIS_TYPE=SENTINEL REDIS_URL=m,a:1 REDIS_AUTH=u:p REDIS_SENTINEL_AUTH=u:p", Redis{Addrs: []string{"a:1"}, Sentinel: "m", User: "u", Password: "p"}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=a:1 REDIS_SENTINEL_AUTH=p", Redis{Addrs: []string{"a:1"}}},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=a:1 REDIS_TLS=true REDIS_TLS_CACERT=/ca", Redis{Addrs: []string{"a:1"}, TLS: &ClientTLS{CA: "/ca"}}},
	} {
		if s, notices, err := Parse(strings.Fields(test.environ)); err != nil || len(notices) > 0 || !reflect.DeepEqual(s.Redis, test.want) {
			t.Errorf("%s: %+v, %v, %v", test.environ, s, notices, err)
		}
	}
}

// TestRedisMistakes checks the sentences about addresses, none of which has a part of one.
func TestRedisMistakes(t *testing.T) {
	for _, test := range []struct{ environ, want string }{
		{"REDIS_URL=redis:6379", "env REDIS_URL: REDIS_SOCKET_TYPE is unix, by default, and Limitgate reaches Redis by TCP: set REDIS_SOCKET_TYPE=tcp and REDIS_URL=host:port"},
		{"REDIS_URL=/run/hunter.sock", "env REDIS_URL: REDIS_SOCKET_TYPE is unix"},
		{"REDIS_SOCKET_TYPE=unix", "env REDIS_URL: REDIS_SOCKET_TYPE is unix"},
		{"REDIS_SOCKET_TYPE=tcp", "env REDIS_URL: it is not set, and its default is a Unix socket; write for example REDIS_URL=redis:6379"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=", "env REDIS_URL: it is not host:port"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=hunter", "env REDIS_URL: it is not host:port"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=:6379", "env REDIS_URL: it is not host:port"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=hunter:0", "env REDIS_URL: it is not host:port"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=u:hunter@a:1", "env REDIS_URL: it is not host:port"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://u:hun%ter@a:1", "env REDIS_URL: it is not host:port"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://a", "env REDIS_URL: it is not host:port"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://u:hunter@a:1/x", "behind the port is not the number of a database; write redis://host:port/3"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis://hunter@a:1", "env REDIS_URL: a user needs a password"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=a:1 REDIS_AUTH=hunter:", "env REDIS_AUTH: a user needs a password"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=rediss://u:hunter@a:1", "ratelimit does not read rediss://; write redis:// or host:port, and set REDIS_TLS=true"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=a:1,b:2", "it names several nodes: set REDIS_TYPE=CLUSTER"},
		{"REDIS_TYPE=CLUSTER", "env REDIS_URL: it is not set, and its default is a Unix socket"},
		{"REDIS_TYPE=CLUSTER REDIS_URL=a:1,", "env REDIS_URL: it is not host:port"},
		{"REDIS_TYPE=CLUSTER REDIS_URL=redis://a:1/1", "a Redis Cluster has database 0 only"},
		{"REDIS_TYPE=CLUSTER REDIS_URL=redis://u:hunter@a:1,b:2", "its addresses differ in the user or the password"},
		{"REDIS_TYPE=SENTINEL REDIS_URL=hunter", "write the name of the master and the Sentinels"},
		{"REDIS_TYPE=SENTINEL REDIS_URL=,a:1", "write the name of the master and the Sentinels"},
		{"REDIS_TYPE=SENTINEL REDIS_URL=m,hunter", "env REDIS_URL: it is not host:port"},
		{"REDIS_TYPE=SENTINEL REDIS_URL=m,redis://:hunter@a:1", "an address of a Sentinel has no user, password or database"},
		{"REDIS_TYPE=SENTINEL REDIS_URL=m,a:1 REDIS_AUTH=hunter REDIS_SENTINEL_AUTH=hunter2", "env REDIS_SENTINEL_AUTH: Sentinels get the login of Redis"},
		{"REDIS_TYPE=SENTINEL REDIS_URL=m,a:1 REDIS_SENTINEL_AUTH=hunter", "env REDIS_SENTINEL_AUTH: Sentinels get the login of Redis"},
	} {
		s, _, err := Parse(strings.Fields(test.environ))
		if s != nil || err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "hun") {
			t.Errorf("%s: %v, %v", test.environ, s, err)
		}
	}
}
