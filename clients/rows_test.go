//go:build clients

package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// nodeModules is the folder into which provision.sh installs the clients of Node.js with
// npm.
const nodeModules = "../.cache/clients/node/node_modules"

// installable returns the clients that provision.sh installs, also those that are missing, with the
// reason.
func installable(tb testing.TB) []row {
	rows := append(goRows(tb), nodeRows(tb)...)
	rows = append(rows, pythonRows()...)
	rows = append(rows, phpRows()...)
	return append(rows, otherRows(tb)...)
}

func goRows(tb testing.TB) []row {
	build(tb, "./...")
	driver := func(name string) []string { return []string{filepath.Join(built, name)} }
	return append(quickRows(),
		row{client: "rueidis", settings: "default", command: driver("rueidis"), single: true, cluster: true},
		row{client: "rueidis", settings: "`AlwaysRESP2`", command: driver("rueidis"), resp: "2", single: true, cluster: true},
		row{client: "valkey-go", settings: "default", command: driver("valkeygo"), single: true, cluster: true},
		row{client: "valkey-go", settings: "`AlwaysRESP2`", command: driver("valkeygo"), resp: "2", single: true, cluster: true},
		row{client: "redigo", settings: "default", command: driver("redigo"), single: true},
		row{client: "radix", settings: "`PoolConfig{Size: 1}`", command: driver("radix"), single: true, cluster: true},
	)
}

func nodeRows(tb testing.TB) []row {
	modules, err := filepath.Abs(nodeModules)
	if err != nil {
		tb.Fatal(err)
	}
	// Node.js needs it to find the clients when a driver lies elsewhere.
	tb.Setenv("NODE_PATH", modules)
	var rows []row
	for _, r := range []row{
		{client: "ioredis", settings: "default", command: []string{"ioredis.js"}, more: []string{"ioredis"}},
		{client: "ioredis", settings: "RESP2", command: []string{"ioredis.js"}, more: []string{"ioredis"}, resp: "2"},
		{client: "ioredis 5", settings: "default", command: []string{"ioredis.js"}, more: []string{"ioredis-5"}},
		{client: "iovalkey", settings: "default", command: []string{"ioredis.js"}, more: []string{"iovalkey"}},
		{client: "node-redis", settings: "default", command: []string{"redis.js"}, more: []string{"redis"}},
		{client: "node-redis", settings: "RESP2", command: []string{"redis.js"}, more: []string{"redis"}, resp: "2"},
		{client: "node-redis 5", settings: "default", command: []string{"redis.js"}, more: []string{"redis-5"}},
		{client: "node-redis 5", settings: "RESP3", command: []string{"redis.js"}, more: []string{"redis-5"}, resp: "3"},
		{client: "node-redis 4", settings: "default", command: []string{"redis.js"}, more: []string{"redis-4"}},
		{client: "valkey-glide (Node.js)", settings: "default", command: []string{"glide.js"}, more: []string{"@valkey/valkey-glide"}},
		{client: "valkey-glide (Node.js)", settings: "RESP2", command: []string{"glide.js"}, more: []string{"@valkey/valkey-glide"}, resp: "2"},
	} {
		if r.command[0] == "glide.js" {
			r.noCertificate = "it has no option for a certificate of the client"
		}
		r.command = []string{"node", filepath.Join("node", r.command[0])}
		r.single, r.cluster = true, true
		r.missing = absent("Node.js and npm, version 20 or later, are needed", "node", "-e", "require('"+r.more[0]+"')")
		rows = append(rows, r)
	}
	return rows
}

func pythonRows() []row {
	// Debian's own Python has Debian's packages; another one may come first in PATH.
	python := "python3"
	if absent("another", "/usr/bin/python3", "-c", "import redis") == "" {
		python = "/usr/bin/python3"
	}
	command := []string{python, "python/redispy.py"}
	return []row{
		{
			client: "redis-py", settings: "with hiredis", command: command, more: []string{"hiredis"}, single: true, cluster: true,
			missing: absent("the packages python3-redis and python3-hiredis are needed", python, "-c", "import redis, hiredis"),
		},
		{
			client: "redis-py", settings: "without hiredis", command: command, more: []string{"python"}, single: true,
			missing: absent("the package python3-redis is needed", python, "-c", "import redis"),
		},
	}
}

func phpRows() []row {
	return []row{
		{
			client: "phpredis", settings: "default", command: []string{"php", "php/phpredis.php"}, single: true, cluster: true,
			missing: absent("the packages php-cli and php-redis are needed", "php", "-r", "new Redis();"),
		},
		{
			client: "Predis", settings: "default", command: []string{"php", "php/predis.php"}, single: true,
			missing: absent("the packages php-cli and php-predis are needed", "php", "-r", "require 'Predis/Autoloader.php';"),
		},
	}
}

func otherRows(tb testing.TB) []row {
	rows := []row{
		{
			client: "redis-rb", settings: "default", command: []string{"ruby", "ruby/redisrb.rb"}, single: true, cluster: true,
			missing: absent("the package ruby-redis is needed", "ruby", "-e", "require 'redis'"),
		},
		hiredisRow(tb),
		{
			client: "lua-redis", settings: "default", command: []string{"lua5.1", "lua/redis.lua"}, single: true,
			missing: absent("the packages lua5.1 and lua-redis are needed", "lua5.1", "-e", "require 'redis'"),
			noTLS:   absent("the package lua-sec is needed", "lua5.1", "-e", "require 'ssl'"),
		},
	}
	return append(rows,
		perlRow("Redis", "libredis-perl", absent("the package libio-socket-ssl-perl is needed", "perl", "-MIO::Socket::SSL", "-e", "1")),
		perlRow("Redis::Fast", "libredis-fast-perl", "Debian's version 0.34 has no options for TLS and users"))
}

func perlRow(module, needed, noTLS string) row {
	return row{
		client: module + " (Perl)", settings: "`reconnect => 2`", command: []string{"perl", "perl/redis.pl"}, more: []string{module}, single: true,
		missing: absent("the package "+needed+" is needed", "perl", "-M"+module, "-e", "1"), noTLS: noTLS,
	}
}

// hiredisRow compiles the driver, if there are a compiler and the library.
func hiredisRow(tb testing.TB) row {
	tb.Helper()
	r := row{
		client: "hiredis (C)", settings: "default", command: []string{filepath.Join(built, "hiredis")}, single: true,
		missing: absent("gcc and the package libhiredis-dev are needed", "gcc", "-fsyntax-only", "-include", "hiredis/hiredis.h", "-x", "c", os.DevNull),
		noTLS:   "Debian's version 0.14 has no TLS, which came with 1.0",
	}
	if r.missing != "" {
		return r
	}
	if out, err := exec.Command("gcc", "-Wall", "-Wextra", "-o", r.command[0], "c/hiredis.c", "-lhiredis").CombinedOutput(); err != nil {
		tb.Fatalf("compile the driver of hiredis: %v\n%s", err, out)
	}
	return r
}

// unreachable returns clients that provision.sh cannot install, and one that never runs.
func unreachable() []row {
	const jar = "Debian has no package of it, and npm and Go modules hold no jars"
	return []row{
		{client: "redis-benchmark `--cluster`", missing: "it refuses a cluster of one node"},
		{client: "Jedis", missing: jar},
		{client: "Lettuce", missing: jar},
		{client: "StackExchange.Redis", missing: "Debian has no .NET"},
		{client: "redis-rs", missing: "Debian has no package of it"},
	}
}

// absent runs a command that succeeds if a client is installed, and returns needed if it
// fails.
func absent(needed string, command ...string) string {
	if exec.Command(command[0], command[1:]...).Run() != nil {
		return needed
	}
	return ""
}
