package config

import (
	"strings"
	"testing"
)

// TestHTTPMistakes: mistakes in the settings of HTTP get a sentence that says what would be right.
func TestHTTPMistakes(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"--http=8080", `"8080" is not host:port; write for example 127.0.0.1:8080`},
		{"--http=/tmp/x.sock", `"/tmp/x.sock" is a path; write unix:/tmp/x.sock for a Unix socket`},
		{"--http=http://127.0.0.1:8080", "is a URL; write host:port alone, for example 127.0.0.1:8080"},
		{"--http=127.0.0.1:6380", "the default of --listen and flag --http have the same port 6380 (127.0.0.1:6380): set another port by one of them"},
		{"--http-gateway=nginx", "flag --http-gateway: it has no effect without --http: say --http 127.0.0.1:8080"},
		{"--rls-config=folder", "flag --rls-config: it has no effect without --rls: say --rls 127.0.0.1:8081"},
		{"--http=unix:limitgate.sock", "has no absolute path; write for example unix:/run/limitgate/http.sock"},
		{"--http=unix:/" + strings.Repeat("a", 103), "the path of a Unix socket has at most 103 bytes"},
		{"--http=0.0.0.0:8080", "http.listen 0.0.0.0:8080 is no loopback address, and would let anybody on the network spend quotas: listen on 127.0.0.1, set --users"},
		{"--http-gateway=ngnix", "auto, nginx, caddy, traefik, envoy, haproxy, kong or apisix"},
		{"--http-headers=draft-10", "draft-11, draft-03, legacy or off"},
		{"--http-tenant-header=X Api Key", `"X Api Key" is not the name of a header; write for example X-Api-Key`},
		{"--http-tenant-header=cookie", "clients put anything into Cookie"},
		{"--http-tenant-header=user-agent", "clients put anything into User-Agent"},
		{"--http=localhost:8080/check", `"localhost:8080/check" has a path; write host:port alone: localhost:8080`},
		{"--http-trusted-hops=2", "flag --http-trusted-hops: it has no effect without --http"},
		{"--http-dim-headers=user=X-A,user=X-B", `"user" has two headers; name one`},
		{"--http-address-header=", `"" is not the name of a header`},
		{"--http-dim-headers=user:X-User", `"user:X-User" is not DIM=HEADER; write for example user=X-User-Id`},
		{"--http-dim-headers=ip=X-Real-IP", "tenant, op and ip have settings of their own: http.tenant_header, http.gateway and http.address_header"},
		{"--http-trusted-hops=33", "from 0 to 32"},
		{"--http-trusted-cidrs=10.0.0.0/33", `"10.0.0.0/33" is not a network; write for example 10.0.0.0/8`},
		{"--http-trusted-cidrs=10.0.0.0,127.0.0.1", `10.0.0.0 is one address, and looks like a network without its length; write for example 10.0.0.0/8, or 10.0.0.0/32 for that address`},
		{"--http-trusted-cidrs=203.0.113.0", "write for example 203.0.113.0/24, or 203.0.113.0/32 for that address"},
		{"--http-trusted-cidrs=2001:db8::", "write for example 2001:db8::/64, or 2001:db8::/128 for that address"},
		{"--http-trusted-cidrs=0.0.0.0", `0.0.0.0 is one address, and no network; write 0.0.0.0/0 if all addresses are meant`},
		{"--http-trusted-cidrs=::", `:: is one address, and no network; write ::/0 if all addresses are meant`},
		{"--http-trusted-cidrs=fe80::%eth0", `"fe80::%eth0" has a zone, which no network has; write it without %eth0`},
		{"--http-trusted-cidrs=::ffff:10.1.2.0", "is a network of IPv4 in the form of IPv6; write its IPv4 form"},
		{"--http-trusted-cidrs=::ffff:10.0.0.0/104", "is a network of IPv4 in the form of IPv6; write its IPv4 form"},
	} {
		if _, _, err := load([]string{row.args}, nil, ""); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%.60s: %v, want %s", row.args, err, row.want)
		}
	}
	if _, _, err := load([]string{"--http=127.0.0.1:8080", "--http-trusted-hops=2", "--http-trusted-cidrs=10.0.0.0/8"}, nil, ""); err == nil || !strings.Contains(err.Error(), "say --http-trusted-hops or --http-trusted-cidrs") {
		t.Error(err)
	}
	for _, args := range [][]string{{"--http=unix:/run/x.sock"}, {"--http=0.0.0.0:8080", "--unsafe-open"}, {"--http=0.0.0.0:8080", "--users=users.acl"}} {
		if _, _, err := load(args, nil, ""); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	for listen, local := range map[string]bool{"": true, "127.0.0.1:1": true, "unix:/x": true, "0.0.0.0:1": false} {
		if s := (&Settings{Listen: "127.0.0.1:2", HTTP: HTTP{Listen: listen}}); s.LocalOnly() != local || s.IsOpen() != !local {
			t.Errorf("%q: local %t, open %t", listen, s.LocalOnly(), s.IsOpen())
		}
	}
}

// TestConsequences: a value that cannot be read is the only mistake, and not that others lack it.
func TestConsequences(t *testing.T) {
	for args, want := range map[string]string{
		"--rls=31377 --rls-config=folder":                                                          `flag --rls: "31377" is not host:port; write for example 127.0.0.1:31377`,
		"--rls=unix:rel.sock --rls-config=folder":                                                  `flag --rls: `,
		"--http=31309 --http-gateway=kong":                                                         `flag --http: "31309" is not host:port; write for example 127.0.0.1:31309`,
		"--redis=31310 --redis-tls":                                                                `flag --redis: "31310" is a port without its host; write host:port, for example 127.0.0.1:31310`,
		"--redis-sentinel=master=m,127.0.0.1 --redis-tls --instances=heartbeat":                    `flag --redis-sentinel: `,
		"--limits-canary=abc --rollout-gate=appconfig://a/b/c --cells-table=c --limits=basic.yaml": "it is for limits in a table",
		"--redis=31310 --redis-user=u":                                                             `flag --redis: `,
		"--redis-tls-ca=f --redis=h:1 --redis-auth=iams":                                           `flag --redis-auth: `,
	} {
		_, _, err := load(strings.Fields(args), nil, "")
		lines := 1
		if strings.Contains(args, "iams") || strings.Contains(args, "canary") { // and that the authorities have no effect, or that it is no table
			lines = 2
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") != lines-1 {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
