package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// mistakes has every kind of mistake with its whole message.
var mistakes = []struct {
	args, environ, file string // separated by spaces, spaces and nothing
	want                string
}{
	// Values.
	{args: "--decision-timeout 5", want: `flag --decision-timeout: "5" is not a duration; write it with a unit, for example 5ms`},
	{environ: "LIMITGATE_DECISION_TIMEOUT=", want: `env LIMITGATE_DECISION_TIMEOUT: "" is not a duration; write it with a unit, for example 5ms`},
	{file: "\ndecision_timeout: 5", want: `limitgate.yaml:2: decision_timeout: "5" is not a duration; write it with a unit, for example 5ms`},
	{args: "--privacy-ip-max-ttl 1d", want: `flag --privacy-ip-max-ttl: "1d" is not a duration: its units are h, m and s, and a day is 24h; write 24h`},
	{file: "privacy:\n  ip_max_ttl: 2w", want: `limitgate.yaml:2: privacy.ip_max_ttl: "2w" is not a duration: its units are h, m and s, and a day is 24h; write 336h`},
	{args: "--idle-timeout 1day", want: `flag --idle-timeout: "1day" is not a duration: its units are h, m and s, and a day is 24h; write 24h`},
	{args: "--idle-timeout 300", want: `flag --idle-timeout: "300" is not a duration; write it with a unit, for example 5m`},
	{args: "--max-conn-age 1m30", want: `flag --max-conn-age: "1m30" is not a duration: its last number has no unit; write 1m30s`},
	{args: "--max-conn-age x", want: `flag --max-conn-age: "x" is not a duration; write it with a unit, for example 1h`},
	{args: "--max-conn-age 1month", want: `flag --max-conn-age: "1month" is not a duration: its units are h, m and s, and a day is 24h; write for example 1h`},
	{args: "--max-conn-age 8d", want: "flag --max-conn-age: 8d is out of bounds; it must be from 0s to 168h"},
	{environ: "LIMITGATE_RETRY_JITTER=5min", want: `env LIMITGATE_RETRY_JITTER: "5min" is not a duration: its units are h, m, s and ms; write 5m`},
	{args: "--backstop-total-rate 1k", want: `flag --backstop-total-rate: "1k" is not a whole number; write it in digits only, for example 1000`},
	{args: "--backstop-total-rate x", want: `flag --backstop-total-rate: "x" is not a whole number; write it in digits only, for example 1000`},
	{args: "--backstop-total-rate 250/s", want: `flag --backstop-total-rate: "250/s" is not a whole number; write it in digits only, for example 250`},
	{args: "--max-conns many", want: `flag --max-conns: "many" is not a whole number; write it in digits only, for example 10000`},
	{file: "max_conns: 20k", want: `limitgate.yaml:1: max_conns: "20k" is not a whole number; write it in digits only, for example 20000`},
	{args: "--decision-timeout 61s", want: "flag --decision-timeout: 61s is out of bounds; it must be from 1ms to 1m"},
	{args: "--decision-timeout 999us", want: "flag --decision-timeout: 999us is out of bounds; it must be from 1ms to 1m"},
	{args: "--retry-jitter -1s", want: "flag --retry-jitter: -1s is out of bounds; it must be from 0s to 1h"},
	{args: "--retry-jitter 61m", want: "flag --retry-jitter: 61m is out of bounds; it must be from 0s to 1h"},
	{args: "--memory-buckets 999", want: "flag --memory-buckets: 999 is out of bounds; it must be from 1000 to 100000000"},
	{args: "--instances 100001", want: "flag --instances: 100001 is out of bounds; it must be from 1 to 100000"},
	{args: "--instances 99999999999999999999", want: "flag --instances: 99999999999999999999 is out of bounds; it must be from 1 to 100000"},
	{args: "--instances 1e3", want: `flag --instances: "1e3" is not a whole number; write it in digits only, for example 1`},
	{args: "--redis-db 1", want: "flag --redis-db: unknown flag; a database of Redis is named with its address: --redis=redis://HOST:PORT/1"},
	{args: "--privacy-ipv6-prefix 129", want: "flag --privacy-ipv6-prefix: 129 is out of bounds; it must be from 1 to 128"},
	{environ: "LIMITGATE_PPROF=1", want: `env LIMITGATE_PPROF: "1" is not a switch; write true or false`},
	{args: "--log-level loud", want: `flag --log-level: "loud" is none of the choices; write debug, info, warn or error`},
	{args: "--log-format xml", want: `flag --log-format: "xml" is none of the choices; write text or json`},
	{args: "--limits=a\x00b", want: `flag --limits: "a\x00b" is not a path: it holds a zero byte`},
	{args: "--backstop-ceiling 0", want: "flag --backstop-ceiling: 0 is out of bounds; it must be from 1 to 100"},

	// Instances.
	{args: "--instances -1", want: "flag --instances: -1 is out of bounds; it must be from 1 to 100000"},
	{args: "--instances=", want: `flag --instances: "" is no number of proxies, and no source of one; write ` + instancesForms},
	{args: "--instances auto", want: `flag --instances: "auto" is no number of proxies, and no source of one; write ` + instancesForms},
	{args: "--instances heartbeat:x", want: `flag --instances: "heartbeat:x" is no number of proxies, and no source of one; write ` + instancesForms},
	{args: "--instances heartbeat", want: "flag --instances: heartbeat is kept in a Redis, and there is none: name one by --redis, or give the number of proxies"},
	{file: "\ninstances: heartbeat", want: "limitgate.yaml:2: heartbeat is kept in a Redis, and there is none: name one by --redis, or give the number of proxies"},
	{args: "--instances dns:", want: "flag --instances: the name is missing; write for example dns:limitgate.default.svc.cluster.local"},
	{args: "--instances dns:10.0.0.1", want: `flag --instances: "10.0.0.1" is an address, which is always one; write the name of a headless service`},
	{args: "--instances dns:a..b", want: `flag --instances: "a..b" is not a name in the DNS; write letters, digits, - and _, with dots between parts of at most 63`},
	{args: "--instances dns+srv:a:1", want: `flag --instances: "a:1" is not a name in the DNS; write letters, digits, - and _, with dots between parts of at most 63`},
	{args: "--instances dns:" + strings.Repeat("a.", 128), want: "flag --instances: the name has 255 bytes; names in the DNS have 253 at most"},
	{args: "--instances eds:a:1", want: `flag --instances: "a:1" is not HOST:PORT/CLUSTER; write for example eds:127.0.0.1:18000/limitgate`},
	{args: "--instances eds:a/b", want: `flag --instances: "a" is not host:port; write for example 127.0.0.1:18000`},
	{args: "--instances eds:http://a:1/b", want: `flag --instances: "http:" is not host:port; the port must be a number from 1 to 65535`},
	{args: "--instances eds:a:1/b\tc", want: `flag --instances: "b\tc" has a space or control character in it; write the name of an EDS cluster`},
	{args: "--instances eds:a:1/" + strings.Repeat("c", 257), want: "flag --instances: the name of the cluster has 257 bytes; it may have 256"},

	{args: "--privacy-ip-secret-previous-file f", want: "flag --privacy-ip-secret-previous-file: it is replaced by another secret: set --privacy-ip-secret-file"},

	// Events.
	{args: "--webhook-url https://a/", want: "flag --webhook-url: its receiver must be able to tell who sends events: set --webhook-secret-file"},
	{file: "webhook:\n  secret_file: f", want: "limitgate.yaml:2: it signs events, and there is no receiver of them: set --webhook-url"},
	{args: "--webhook-url http://a/ --webhook-secret-file f", want: "flag --webhook-url: events would cross the network unencrypted; write https, or the http URL of this machine, for example http://127.0.0.1:8080/limits"},

	// Tokens.
	{args: "--bypass-revoked f", want: "flag --bypass-revoked: tokens need keys: set --bypass-jwks"},
	{args: "--bypass-jwks http://a/", want: "flag --bypass-jwks: keys are read from a file or by https, which proves their origin"},
	{args: "--jwt-issuer i", want: "flag --jwt-issuer: tokens need the keys of their issuer: set --jwt-jwks"},
	{args: "--jwt-jwks k.json --jwt-issuer i", want: "flag --jwt-jwks: tokens of any issuer, or for any other service, would be accepted: set --jwt-issuer and --jwt-audience"},
	{args: "--jwt-jwks http://a/ --jwt-issuer i --jwt-audience a", want: "flag --jwt-jwks: keys are read from a file or by https, which proves their origin"},
	{args: "--jwt-jwks k --jwt-issuer i --jwt-audience a --jwt-tenant-claim=", want: "flag --jwt-tenant-claim: a token must name a tenant: name the claim, or leave the setting out for tenant_id"},

	// Addresses.
	{args: "--admin off", want: `flag --admin: "off" is not host:port; write for example 127.0.0.1:9180, or nothing to switch it off`},
	{file: "serve:\n  listen: 127.0.0.1:1", want: "limitgate.yaml:1: serve: unknown key; settings stand in column 1, without serve: above them"},
	{args: "--listen 6380", want: `flag --listen: "6380" is not host:port; write for example 127.0.0.1:6380`},
	{args: "--listen 21060", want: `flag --listen: "21060" is not host:port; write for example 127.0.0.1:21060`},
	{args: "--listen 99999", want: `flag --listen: "99999" is not host:port; write for example 127.0.0.1:6380`},
	{args: "--listen=", want: `flag --listen: "" is not host:port; write for example 127.0.0.1:6380`},
	{args: "--listen ::1:6380", want: `flag --listen: "::1:6380" is not host:port; write an IPv6 address in brackets, for example [::1]:6380`},
	{args: "--listen localhost:redis", want: `flag --listen: "localhost:redis" is not host:port; the port must be a number from 0 to 65535`},
	{args: "--listen localhost:65536", want: `flag --listen: "localhost:65536" is not host:port; the port must be a number from 0 to 65535`},
	{args: "--listen local\thost:1", want: `flag --listen: "local\thost:1" has a host with a space or control character in it; write for example 127.0.0.1:6380`},
	{args: "--listen unix:/run/x", want: `flag --listen: "unix:/run/x" looks like a unix socket, and unix sockets are not supported; write host:port, for example 127.0.0.1:6380`},
	{args: "--listen http://127.0.0.1:6380", want: `flag --listen: "http://..." is a URL; write host:port alone, for example 127.0.0.1:6380`},
	{args: "--admin /run/x.sock", want: `flag --admin: "/run/x.sock" looks like a unix socket, and unix sockets are not supported; write host:port, for example 127.0.0.1:9180`},
	{args: "--redis a:1,,b:2", want: "flag --redis: an address is missing between commas; write host:port,host:port"},
	{args: "--redis 7000", want: `flag --redis: "7000" is a port without its host; write host:port, for example 127.0.0.1:7000`},
	{args: "--redis 127.0.0.1", want: `flag --redis: "127.0.0.1" has no port; write host:port, for example 127.0.0.1:6379`},
	{args: "--redis :6379", want: `flag --redis: ":6379" has no host; write host:port, for example 127.0.0.1:6379`},
	{args: "--redis 1.2.3.4:80:81", want: `flag --redis: "1.2.3.4:80:81" has two ports; write host:port, for example 127.0.0.1:6379`},
	{args: "--redis 1.2.3.4:x:y", want: `flag --redis: "1.2.3.4:x:y" is not host:port; write an IPv6 address in brackets, for example [::1]:6379`},
	{args: "--redis a:0", want: `flag --redis: "a:0" is not host:port; the port must be a number from 1 to 65535`},
	{args: "--redis redis://a:1,rediss://b:1", want: "flag --redis: the addresses differ in their scheme or database; write the same for all nodes"},
	{args: "--redis redis://a:1/-0", want: "flag --redis: behind the port is not the number of a database; write redis://host:port/3"},
	{args: "--redis redis://a:1//3", want: "flag --redis: behind the port is not the number of a database; write redis://host:port/3"},
	{args: "--redis redis://a:1/003", want: "flag --redis: behind the port is not the number of a database; write redis://host:port/3"},
	{args: "--redis redis://a:1/x", want: "flag --redis: behind the port is not the number of a database; write redis://host:port/3"},
	{args: "--redis redis://u:12/hunter2@h:1", want: "flag --redis: an address must not contain a user or a password: set --redis-user and --redis-password-file"},
	{args: "--redis redis://u:12,hunter2,x@h:1", want: "flag --redis: an address must not contain a user or a password: set --redis-user and --redis-password-file"},
	{args: "--redis-tls", want: "flag --redis-tls: it is for a Redis, and there is none: name one by --redis"},
	{args: "--redis-tls-ca f", want: "flag --redis-tls-ca: it is for a Redis, and there is none: name one by --redis"},
	{args: "--redis-tls-cert f", want: "flag --redis-tls-cert: it is for a Redis, and there is none: name one by --redis"},
	{args: "--redis-tls-key f", want: "flag --redis-tls-key: it is for a Redis, and there is none: name one by --redis"},
	{args: "--redis-tls-server-name f", want: "flag --redis-tls-server-name: it is for a Redis, and there is none: name one by --redis"},
	{args: "--redis-iam-cache f", want: "flag --redis-iam-cache: it is for a Redis, and there is none: name one by --redis"},
	{args: "--http 127.0.0.1:0 --http-trusted-hops 0 --http-address-header X-Real-IP", want: "flag --http-trusted-hops: 0 is the peer, and the header of --http-address-header is not read: say 1, or leave out --http-address-header"},
	{args: "--ready-needs-store", want: "flag --ready-needs-store: it is for a Redis, and there is none: name one by --redis"},
	{args: "--redis-password-file f", want: "flag --redis-password-file: it is for a Redis, and there is none: name one by --redis"},
	{args: "--tls-key f", want: "flag --tls-key: a certificate needs its key: set --tls-cert and --tls-key"},
	{args: "--redis redis://a:1?db=3", want: "flag --redis: the number of a database stands behind the port: write redis://host:port/3"},
	{args: "--redis http://a:1", want: "flag --redis: it is not the URL of a Redis; write host:port, redis://host:port, or rediss://host:port for TLS"},
	{args: "--redis user:hunter2@a:1", want: "flag --redis: an address must not contain a user or a password: set --redis-user and --redis-password-file"},
	{args: "--tls-cert f", want: "flag --tls-cert: a certificate needs its key: set --tls-cert and --tls-key"},
	{args: "--tls-client-ca f", want: "flag --tls-client-ca: certificates of clients need TLS: set --tls-cert and --tls-key"},
	{args: "--redis-sentinel a:1,b:2", want: "flag --redis-sentinel: the name of the master and addresses of Sentinels belong here; write master=NAME,HOST:PORT,HOST:PORT"},
	{args: "--redis-iam-cache x.cache.amazonaws.com", want: "flag --redis-iam-cache: the name of a replication group, serverless:NAME or memorydb:NAME belongs here, and not a host"},
	{args: "--redis a:1 --redis-tls-ca f", want: "flag --redis-tls-ca: the connections to Redis are not encrypted: set --redis-tls"},
	{args: "--rls 0.0.0.0:1 --rls-config f --tls-cert c --tls-key k --tls-client-ca a --rls-tls-cert c --rls-tls-key k", want: "flag --rls: rls.listen 0.0.0.0:1 is no loopback address, and would let anybody on the network spend quotas: listen on 127.0.0.1, set --tls-client-ca, or --rls-tls-client-ca beside a certificate of its own, so that clients need a certificate, or say --unsafe-open if a network policy protects it"},
	{args: "--rls 127.0.0.1:1 --rls-config f --rls-tls-cert c", want: "flag --rls-tls-cert: a certificate needs its key: set --rls-tls-cert and --rls-tls-key"},
	{args: "--rls 127.0.0.1:1 --rls-config f --rls-tls-client-ca c", want: "flag --rls-tls-client-ca: it belongs to a certificate of the rate limit service: set --rls-tls-cert and --rls-tls-key"},
	{args: "--redis a:1 --redis-tls --redis-tls-key f", want: "the default of --redis-tls-cert: a certificate needs its key: set --redis-tls-cert and --redis-tls-key"},
	{args: "--redis a:1 --redis-user u", want: "flag --redis-user: the user needs a password: set --redis-password-file or --redis-password-secret"},
	{args: "--redis a:1 --redis-sentinel master=m,b:2", want: "flag --redis-sentinel: the Sentinels know the address of the master: leave out --redis"},
	{args: "--redis a:1 --redis-tls --redis-auth iam", want: "flag --redis-auth: tokens of IAM are for a user of a cache: set --redis-user and --redis-iam-cache"},
	{args: "--redis a:1 --redis-auth iam --redis-user u --redis-iam-cache c", want: "flag --redis-auth: AWS takes tokens of IAM over TLS only: set --redis-tls"},
	{args: "--redis redis://:hunter2@a:1", want: "flag --redis: an address must not contain a user or a password: set --redis-user and --redis-password-file"},
	{file: "redis: [a:1, '']", want: "limitgate.yaml:1: redis: an address is missing between commas; write host:port,host:port"},

	// Safety.
	{args: "--listen 0.0.0.0:6380", want: "flag --listen: listen 0.0.0.0:6380 is no loopback address, and would let anybody on the network spend quotas: listen on 127.0.0.1, set --users so that clients need a password, or --tls-client-ca so that they need a certificate, or say --unsafe-open if a network policy protects it"},
	{args: "--listen localhos:6380", want: "flag --listen: listen localhos:6380 has a name, and of names localhost alone is a loopback address, and would let anybody on the network spend quotas: listen on 127.0.0.1, set --users so that clients need a password, or --tls-client-ca so that they need a certificate, or say --unsafe-open if a network policy protects it; did you mean localhost?"},
	{args: "--listen nosuchhost:6380", want: "flag --listen: listen nosuchhost:6380 has a name, and of names localhost alone is a loopback address, and would let anybody on the network spend quotas: listen on 127.0.0.1, set --users so that clients need a password, or --tls-client-ca so that they need a certificate, or say --unsafe-open if a network policy protects it"},
	{environ: "LIMITGATE_ADMIN=:9180", want: "env LIMITGATE_ADMIN: admin :9180 is no loopback address, and would show metrics and profiles to anybody on the network: listen on 127.0.0.1, or say --unsafe-open if a network policy protects it"},
	{file: "\nlisten: '[::]:1'", want: "limitgate.yaml:2: listen [::]:1 is no loopback address, and would let anybody on the network spend quotas: listen on 127.0.0.1, set --users so that clients need a password, or --tls-client-ca so that they need a certificate, or say --unsafe-open if a network policy protects it"},
	// Consequences of an unreadable value are left out.
	{args: "--listen 0.0.0.0:1 --unsafe-open=yes", want: `flag --unsafe-open: "yes" is not a switch; write true or false`},
	{args: "--json", want: "flag --json: it says how to print; add --print-config"},

	// Flags.
	{args: "--decision-timout 5ms", want: "flag --decision-timout: unknown flag; did you mean --decision-timeout?"},
	{args: "--redis-addrs=a:1", want: "flag --redis-addrs: unknown flag; did you mean --redis?"},
	{args: "--redis-hosts=a:1", want: "flag --redis-hosts: unknown flag; did you mean --redis?"},
	{args: "--redis-addr=a:1", want: "flag --redis-addr: unknown flag; did you mean --redis?"},
	{args: "--redis-server=a:1", want: "flag --redis-server: unknown flag; did you mean --redis?"},
	{args: "--http-listen=a:1", want: "flag --http-listen: unknown flag; did you mean --http?"},
	{args: "--rls-listen=a:1", want: "flag --rls-listen: unknown flag; did you mean --rls?"},
	{args: "--emf-sink=a:1", want: "flag --emf-sink: unknown flag; did you mean --emf?"},
	{args: "--xyzzy", want: "flag --xyzzy: unknown flag; limitgate serve --help lists them"},
	{args: "--listen", want: "flag --listen: the value is missing; write --listen=HOST:PORT"},
	{args: "--limits --pprof", want: "flag --limits: the value is missing; write --limits=FILE"},
	{args: "--wrong value --instances 0", want: "flag --wrong: unknown flag; limitgate serve --help lists them\n" +
		"flag --instances: 0 is out of bounds; it must be from 1 to 100000"},

	// Variables.
	{environ: "LIMITGATE_DECISION_TIMOUT=5ms", want: "env LIMITGATE_DECISION_TIMOUT: unknown variable; did you mean LIMITGATE_DECISION_TIMEOUT?"},
	{environ: "LIMITGATE_ADDR=1", want: "env LIMITGATE_ADDR: unknown variable; did you mean LIMITGATE_LISTEN? The commands that ask a limitgate read it too, and take --addr"},
	{environ: "LIMITGATE_REDIS_URL=1", want: "env LIMITGATE_REDIS_URL: unknown variable; did you mean LIMITGATE_REDIS?"},
	{environ: "LIMITGATE_REDIS_HOST=1", want: "env LIMITGATE_REDIS_HOST: unknown variable; did you mean LIMITGATE_REDIS?"},
	{environ: "LIMITGATE_REDIS_ADDR=1", want: "env LIMITGATE_REDIS_ADDR: unknown variable; did you mean LIMITGATE_REDIS?"},
	{environ: "LIMITGATE_REDIS_ADDRS=1", want: "env LIMITGATE_REDIS_ADDRS: unknown variable; did you mean LIMITGATE_REDIS?"},
	{environ: "LIMITGATE_TLS=1", want: "env LIMITGATE_TLS: unknown variable; did you mean LIMITGATE_TLS_CERT?"},
	{environ: "LIMITGATE_HTTP_LISTEN=1", want: "env LIMITGATE_HTTP_LISTEN: unknown variable; did you mean LIMITGATE_HTTP?"},
	{environ: "LIMITGATE_RLS_LISTEN=1", want: "env LIMITGATE_RLS_LISTEN: unknown variable; did you mean LIMITGATE_RLS?"},
	{environ: "LIMITGATE_EMF_SINK=1", want: "env LIMITGATE_EMF_SINK: unknown variable; did you mean LIMITGATE_EMF?"},
	{environ: "LIMITGATE_REDIS_PASSWORD=1", want: "env LIMITGATE_REDIS_PASSWORD: unknown variable; did you mean LIMITGATE_REDIS_PASSWORD_FILE?"},
	{environ: "LIMITGATE_METRICS=1", want: "env LIMITGATE_METRICS: unknown variable; did you mean LIMITGATE_ADMIN?"},
	// Kubernetes sets it to a URL for a Service called limitgate.
	{environ: "LIMITGATE_PORT=6380", want: "env LIMITGATE_PORT: unknown variable; did you mean LIMITGATE_LISTEN?"},
	{environ: "LIMITGATE_ADMIN_PORT=9180", want: "env LIMITGATE_ADMIN_PORT: unknown variable; did you mean LIMITGATE_ADMIN?"},
	{environ: "LIMITGATE_FOO=1", want: "env LIMITGATE_FOO: unknown variable; limitgate serve --help lists them"},
	{environ: "LIMITGATE_PRINT_CONFIG=true", want: "env LIMITGATE_PRINT_CONFIG: only the flag --print-config does that"},
	{environ: "LIMITGATE_CONFIG=missing.yaml", want: "env LIMITGATE_CONFIG: read settings file: open missing.yaml: file does not exist"},

	// The settings file.
	{file: "\n\n\n\n\n\ndecision_timout: 5ms", want: "limitgate.yaml:7: decision_timout: unknown key; did you mean decision_timeout?"},
	{file: "port: 6380", want: "limitgate.yaml:1: port: unknown key; did you mean listen?"},
	{file: "redis_host: a:1", want: "limitgate.yaml:1: redis_host: unknown key; did you mean redis.addrs?"},
	{file: "redis:\n  host: a:1", want: "limitgate.yaml:2: redis.host: unknown key; did you mean redis.addrs?"},
	{file: "redis_url: a:1", want: "limitgate.yaml:1: redis_url: unknown key; did you mean redis.addrs?"},
	{file: "decision-timeout: 5ms", want: "limitgate.yaml:1: decision-timeout: unknown key; did you mean decision_timeout?"},
	{file: "xyzzy: 1", want: "limitgate.yaml:1: xyzzy: unknown key; limitgate serve --help lists the settings"},
	{file: "privacy:\n  ip_maxttl: 1h", want: "limitgate.yaml:2: privacy.ip_maxttl: unknown key; did you mean privacy.ip_max_ttl?"},
	{file: "config: x", want: "limitgate.yaml:1: config: it cannot stand in the file itself; use the flag --config or the variable LIMITGATE_CONFIG"},
	{file: "json: true", want: "limitgate.yaml:1: json: only the flag --json does that"},
	{file: "pprof: true\n\npprof: true", want: "limitgate.yaml:3: pprof: it is already there, on line 1; remove one of them"},
	{file: "privacy.ip_max_ttl: 1h\nprivacy:\n  ip_max_ttl: 1h", want: "limitgate.yaml:3: privacy.ip_max_ttl: it is already there, on line 1; remove one of them"},
	{file: "pprof: true\n---\npprof: true", want: "limitgate.yaml:2: a second YAML document begins; a settings file is one document: remove the line with --- or ..."},
	{file: "pprof: yes", want: `limitgate.yaml:1: pprof: "yes" is not a switch; write true or false`},
	{file: "pprof: 'true'", want: `limitgate.yaml:1: pprof: "true" is in quotes, and so a string; remove the quotes`},
	{file: "max_conns: \"2\"", want: `limitgate.yaml:1: max_conns: "2" is in quotes, and so a string; remove the quotes`},
	{file: "instances: 1.5", want: `limitgate.yaml:1: instances: "1.5" is not a whole number; write it in digits only, for example 1`},
	{file: "limits: 5", want: "limitgate.yaml:1: limits: 5 is not a string; write it in quotes"},
	{file: "limits: [a]", want: "limitgate.yaml:1: limits: one value belongs here, not a list or names with values"},
	{file: "redis:\n- a:1\n- b: 2", want: "limitgate.yaml:3: redis: one value belongs here, not a list or names with values"},
	{file: "admin:", want: `limitgate.yaml:1: admin: the value is missing; write one, "" for an empty one, or remove the line`},
	{file: "limits: &a x\nprivacy.ip_secret_file: *a", want: "limitgate.yaml:2: privacy.ip_secret_file: aliases are not supported; write the value out"},
	{file: "limits: !secret x", want: "limitgate.yaml:1: limits: tags are not supported; remove !secret"},
	{file: "<<: {pprof: true}", want: "limitgate.yaml:1: the name of a setting belongs here; anchors, aliases and merge keys are not supported"},
	{file: "[a]: 1", want: "limitgate.yaml:1: the name of a setting belongs here; anchors, aliases and merge keys are not supported"},
	{file: "- pprof", want: "limitgate.yaml:1: names with values belong here, as in decision_timeout: 5ms"},
	{file: "privacy: 5", want: "limitgate.yaml:1: privacy: it is a section and has no value of its own; its settings are privacy.ip_secret_file, privacy.ip_secret_previous_file, privacy.ip_max_ttl, privacy.ipv4_prefix, privacy.ipv6_prefix"},
	{file: "deny_cache: {entries: 5}", want: "limitgate.yaml:1: deny_cache.entries: unknown key; the settings here are deny_cache.size, deny_cache.max_ttl"},
	{file: "LIMITGATE_RLS: x", want: "limitgate.yaml:1: LIMITGATE_RLS: unknown key; that is its variable, and its key is rls.listen"},
	{file: "pprof: true\n// where clients connect\nlimits: x", want: `limitgate.yaml:2: not readable as YAML: a comment begins with #: write "# where clients connect"`},
	{file: "pprof: true\n// clients: all\nlimits: x", want: `limitgate.yaml:2: // clients: a comment begins with #: write "# clients"`},
	{file: "{\n// clients\n\"limits\": \"x\"}", want: "limitgate.yaml:2: // clients \"limits\": JSON has no comments: leave it out, or write the file as YAML, where a comment begins with #"},
	{file: "[server]\nlisten = 127.0.0.1:1\n", want: "limitgate.yaml:1: it has the form of TOML or of KEY=VALUE, and is to be YAML: NAME: VALUE on a line"},
	{file: "# mine\nlisten = \"127.0.0.1:1\"\n[redis]\naddrs = [\"a:1\"]\n", want: "limitgate.yaml:1: it has the form of TOML or of KEY=VALUE, and is to be YAML: NAME: VALUE on a line"},
	{file: "listen=127.0.0.1:1\nredis=a:1\n", want: "limitgate.yaml:1: it has the form of TOML or of KEY=VALUE, and is to be YAML: NAME: VALUE on a line"},
	{file: "[a, b]\n", want: "limitgate.yaml:1: names with values belong here, as in decision_timeout: 5ms"},
	{file: "limits: 'x\n\n", want: "limitgate.yaml:1: not readable as YAML: the quote in column 9 is not closed: write another one behind the text"},
	{file: "pprof: true\n\tlimits: x", want: "limitgate.yaml:2: not readable as YAML: the line is indented by a tab: YAML is indented by spaces alone"},
	{file: "pprof: true\n---\nlimits: [\n", want: "limitgate.yaml:3: not readable as YAML: the [ is not closed: write ] behind the last value"},
	{file: "a: 1\nlimits: \ufeffx", want: "limitgate.yaml:2: a byte or character that YAML does not allow; a settings file is text in UTF-8"},
	{file: "a: 1\nlimits: \xff", want: "limitgate.yaml:2: a byte or character that YAML does not allow; a settings file is text in UTF-8"},
	{file: "#" + strings.Repeat("x", 1<<20), want: "flag --config: read settings file: limitgate.yaml has 1048577 bytes, and the largest settings file 1048576; is it the limits file?"},

	// All at once: flags, variables, then the file by line.
	{
		args: "--instances 0 --nope", environ: "LIMITGATE_MAX_CONNS=0 LIMITGATE_NOPE=1", file: "pprof: maybe\nnope: 1\nlog_level: 5",
		want: "flag --nope: unknown flag; limitgate serve --help lists them\n" +
			"flag --instances: 0 is out of bounds; it must be from 1 to 100000\n" +
			"env LIMITGATE_NOPE: unknown variable; limitgate serve --help lists them\n" +
			"env LIMITGATE_MAX_CONNS: 0 is out of bounds; it must be from 1 to 1048576\n" +
			"limitgate.yaml:1: pprof: \"maybe\" is not a switch; write true or false\n" +
			"limitgate.yaml:2: nope: unknown key; limitgate serve --help lists the settings\n" +
			"limitgate.yaml:3: log_level: \"5\" is none of the choices; write debug, info, warn or error",
	},
	// Two addresses with one port.
	{args: "--listen localhost:9180", want: "flag --listen and the default of --admin have the same port 9180 (localhost:9180 and 127.0.0.1:9180): set another port by one of them"},
	{args: "--http 127.0.0.1:7000", environ: "LIMITGATE_ADMIN=127.0.0.1:7000", want: "env LIMITGATE_ADMIN and flag --http have the same port 7000 (127.0.0.1:7000): set another port by one of them"},
	{file: "listen: '[::1]:7000'\nadmin: '[0:0::1]:7000'", want: "limitgate.yaml:1: listen and limitgate.yaml:2: admin have the same port 7000 ([::1]:7000 and [0:0::1]:7000): set another port by one of them"},
	{args: "--http unix:/a --rls unix:/a --rls-config x", want: `flag --http and flag --rls have the same socket "/a": set another path by one of them`},
	{args: "--dry-run", want: "flag --dry-run: unknown flag; limitgate limits lint FILE checks a limits file, and mode: shadow of a limit counts and refuses nobody"},
	{args: "--fail-open", want: "flag --fail-open: unknown flag; each limit says what happens without Redis: on_error: open or closed in the limits file"},
	{args: "-d", want: "flag --d: unknown flag; it runs in the foreground: start it by systemd, or with & behind it"},
	{args: "--listen 127.0.0.1:7000 --redis localhost:7000", want: "flag --listen and flag --redis have the same address localhost:7000, and a proxy is no Redis: name the nodes of Redis, or listen on another port"},
	{args: "--admin 127.0.0.1:7000 --redis a:1,127.0.0.1:7000", want: "flag --admin and flag --redis have the same address 127.0.0.1:7000, and a proxy is no Redis: name the nodes of Redis, or listen on another port"},
	// Of a list that is given twice a person may mean both.
	{args: "--redis a:1 --redis b:2", want: "flag --redis: it is given twice; write one list with commas, --redis=HOST:PORT,..."},
	{args: "--limits a.yaml --limits=b.yaml", want: "flag --limits: it is given twice, and the limits are those of one file: write all into that"},
	// Names of flags in other programs.
	{args: "--port 6380", want: "flag --port: unknown flag; did you mean --listen=127.0.0.1:6380?"},
	{args: "--port localhost", want: "flag --port: unknown flag; did you mean --listen?"},
	{args: "-host x", want: "flag --host: unknown flag; did you mean --listen?"},
	{args: "-password x", want: "flag --password: unknown flag; did you mean --redis-password-file?"},
	{args: "--cluster x", want: "flag --cluster: unknown flag; did you mean --redis? It takes the nodes of a cluster: --redis=HOST:PORT,..."},
	{args: "--redis-cluster x", want: "flag --redis-cluster: unknown flag; did you mean --redis? It takes the nodes of a cluster: --redis=HOST:PORT,..."},
	{args: "--timeout 5ms", want: "flag --timeout: unknown flag; did you mean --decision-timeout?"},
	// An overridden value must be valid as well.
	{args: "--instances 2", file: "instances: 0", want: "limitgate.yaml:1: instances: 0 is out of bounds; it must be from 1 to 100000"},
}

func TestMistakes(t *testing.T) {
	for _, m := range mistakes {
		split := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, " ")
		}
		s, origins, err := load(split(m.args), split(m.environ), m.file)
		if err == nil {
			t.Errorf("%q %q %.80q is accepted, want\n%s", m.args, m.environ, m.file, m.want)
			continue
		}
		if err.Error() != m.want {
			t.Errorf("%q %q %.80q is refused with\n%s\nwant\n%s", m.args, m.environ, m.file, err, m.want)
		}
		if s != nil || origins != nil {
			t.Errorf("%q gives settings in spite of the mistake", m.args)
		}
	}
}

func TestMistakeOfReadingKeepsItsCause(t *testing.T) {
	if _, _, err := load([]string{"--config", "missing.yaml"}, nil, ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v does not say that the file is missing", err)
	}
}
