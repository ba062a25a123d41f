package integration

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/redistest"
)

const (
	sentinelPassword = "correct-horse-battery" // of the proxy, at Redis and at the Sentinel
	watcherPassword  = "of-sentinels"
	replicaPassword  = "of-replicas"
	adminPassword    = "of-the-test"
)

// watchedArgs are the settings of a Redis that a Sentinel watches: users with the least rights
// for the proxy, Sentinels and replicas, and TLS for all of them.
func watchedArgs(a *redistest.Authority) []string {
	user := func(name, password, rights string) []string {
		return append([]string{"--user", name, "on", ">" + password}, strings.Fields(rights)...)
	}
	args := append(a.Args(), "--requirepass", adminPassword, "--masteruser", "replica", "--masterauth", replicaPassword)
	args = append(args, user("limitgate", sentinelPassword, cluster.Rights)...)
	args = append(args, user("watcher", watcherPassword, "allchannels +multi +slaveof +ping +exec +subscribe +config|rewrite +role +publish +info +client|setname +client|kill +script|kill")...)
	return append(args, user("replica", replicaPassword, "+psync +replconf +ping")...)
}

// startWatcher starts a Sentinel with TLS and users that watches a master under the name limits.
func startWatcher(t *testing.T, a *redistest.Authority, master *redistest.Node) *redistest.Node {
	t.Helper()
	_, port, _ := net.SplitHostPort(master.TLSAddr())
	text := fmt.Sprintf(`
user limitgate on >%s +sentinel|get-master-addr-by-name
sentinel monitor limits 127.0.0.1 %s 1
sentinel auth-user limits watcher
sentinel auth-pass limits %s
sentinel down-after-milliseconds limits 500
sentinel failover-timeout limits 2000
`, sentinelPassword, port, watcherPassword)
	path := filepath.Join(t.TempDir(), "sentinel.conf") // a Sentinel writes to it
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return redistest.StartSentinel(t, path, append(a.Args(), "--requirepass", adminPassword)...)
}

// TestSentinel: a proxy decides on the master that a Sentinel names, and after a failover on its
// successor, where all connections have TLS and a login, those to the Sentinel too. Meanwhile no
// check gets an error.
func TestSentinel(t *testing.T) {
	a := redistest.NewAuthority(t)
	master := redistest.Start(t, watchedArgs(a)...)
	replica := redistest.StartReplica(t, master, watchedArgs(a)...)
	sentinel := startWatcher(t, a, master)
	file := filepath.Join(t.TempDir(), "password")
	writePassword(t, file, sentinelPassword)
	p := serve(t, writeLimits(t, limitOf("100/366d")), append([]string{
		"--redis-sentinel", "master=limits,rediss://127.0.0.1:1,rediss://" + sentinel.TLSAddr(),
		"--redis-tls-ca", a.CA, "--redis-user", "limitgate", "--redis-password-file", file,
	}, exact...)...)
	checkExactly(t, p, "first", 100)
	eventually(t, "the Sentinel to know the replica", func() bool {
		return strings.Contains(sentinel.CLI(t, "SENTINEL", "REPLICAS", "limits"), replica.TLSAddr())
	})
	load := startPaced(p, 1000)
	load.awaitMore(t, 500)
	c := p.client()
	load.disturb(func() {
		master.Kill()
		eventually(t, "decisions by the successor", func() bool {
			v, err := check(c, "again", "-", "-")
			return err == nil && v.source == "store"
		})
	})
	load.awaitMore(t, 500)
	rate := load.end()
	t.Logf("%.0f checks a second; %s; during the failover: %s", rate, &load.quiet, &load.disturbed[0])
	load.quiet.fromStoreOnly(t)
	if during := &load.disturbed[0]; len(during.errors) > 0 || during.sources["store"]+during.sources["backstop"] != during.decisions() {
		t.Errorf("during the failover: %s %v", during, during.errors)
	}
	checkExactly(t, p, "second", 100)
	if role := replica.CLI(t, "ROLE"); !strings.HasPrefix(role, "master") {
		t.Errorf("the role of the successor is %s", role)
	}
}
