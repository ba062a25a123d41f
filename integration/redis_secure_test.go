package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/redistest"
)

// secureRedis is a Redis Cluster with TLS and a user limitgate with the least rights.
type secureRedis struct {
	*redistest.Cluster
	ca string
}

func startSecureRedis(t *testing.T, password string) *secureRedis {
	t.Helper()
	a := redistest.NewAuthority(t)
	args := append(append(a.Args(), "--user", "limitgate", "on", ">"+password), strings.Fields(cluster.Rights)...)
	return &secureRedis{redistest.StartCluster(t, 3, 0, args...), a.CA}
}

// flags are those of a proxy or of doctor, without the password.
func (r *secureRedis) flags() []string {
	return []string{"--redis", "rediss://" + r.Nodes[0].TLSAddr() + ",rediss://" + r.Nodes[1].TLSAddr(), "--redis-tls-ca", r.ca, "--redis-user", "limitgate"}
}

// each sends a command to all nodes.
func (r *secureRedis) each(t *testing.T, words ...string) {
	t.Helper()
	for _, n := range r.Nodes {
		if got := n.CLI(t, words...); strings.HasPrefix(got, "ERR") || strings.HasPrefix(got, "NOPERM") {
			t.Fatalf("%v: %s", words, got)
		}
	}
}

// writePassword writes a file for --redis-password-file.
func writePassword(t *testing.T, path, password string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSecureRedis: a proxy decides exactly on a Redis with TLS and users, doctor reports that,
// and the password is in no output.
func TestSecureRedis(t *testing.T) {
	const first, second = "correct-horse-battery", "staple-of-another-kind"
	r := startSecureRedis(t, first)
	file := filepath.Join(t.TempDir(), "password")
	writePassword(t, file, first)
	flags := append(r.flags(), "--redis-password-file", file)
	p := serve(t, writeLimits(t, limitOf("100/366d")), append(flags, exact...)...)
	checkExactly(t, p, "first", 100)

	out, errs, code := run(t, nil, append([]string{"doctor", "--timeout", "60s", "--decision-timeout", "1s"}, flags...)...)
	if code != 0 || !strings.Contains(out, "ok    tls          connections to the store are encrypted") || !strings.Contains(out, "cluster of 3 masters") {
		t.Errorf("doctor: exit %d\n%s%s", code, out, errs)
	}
	// The password changes: connections that are open stay, new ones use the new one.
	r.each(t, "ACL", "SETUSER", "limitgate", ">"+second, "<"+first)
	writePassword(t, file, second)
	r.each(t, "CLIENT", "KILL", "USER", "limitgate")
	eventually(t, "decisions with the new password", func() bool {
		v, err := check(p.client(), "reconnected", "-", "-")
		return err == nil && v.source == "store"
	})
	checkExactly(t, p, "second", 100)
	// New logins fail, and the proxy decides over the connections that are open.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "/readyz to report the password", func() bool { return strings.Contains(p.get("/readyz"), "read password") })
	if body := p.get("/readyz"); !strings.Contains(body, `"ready":true`) {
		t.Errorf("/readyz: %s", body)
	}
	checkExactly(t, p, "third", 100)
	printed, _, _ := run(t, nil, append([]string{"serve", "--print-config"}, flags...)...)
	for name, text := range map[string]string{"log": p.output(), "metrics": p.get("/metrics"), "readyz": p.get("/readyz"), "doctor": out + errs, "settings": printed} {
		if strings.Contains(text, first) || strings.Contains(text, second) {
			t.Errorf("the password is in the %s", name)
		}
	}
}

// checkExactly fails unless a tenant with a limit of n gets n of n+10 units from the store.
func checkExactly(t *testing.T, p *proxy, tenant string, n int) {
	t.Helper()
	c, admitted := p.client(), 0
	for range n + 10 {
		v, err := check(c, tenant, "-", "-")
		if err != nil || v.source != "store" && v.allowed {
			t.Fatalf("%+v, %v", v, err)
		}
		if v.allowed {
			admitted++
		}
	}
	if admitted != n {
		t.Errorf("%s got %d units of %d", tenant, admitted, n)
	}
}

// TestSecureRedisMistakes: a proxy does not start with a wrong password or authority, and says
// what is wrong.
func TestSecureRedisMistakes(t *testing.T) {
	r := startSecureRedis(t, "correct-horse-battery")
	file := filepath.Join(t.TempDir(), "password")
	writePassword(t, file, "wrong-horse")
	for name, row := range map[string]struct {
		flags []string
		want  string
	}{
		"password":  {append(r.flags(), "--redis-password-file", file), "check --redis-user and the file of --redis-password-file"},
		"no file":   {append(r.flags(), "--redis-password-file", file+"x"), "read password: "},
		"authority": {append(r.flags(), "--redis-password-file", file, "--redis-tls-ca", redistest.NewAuthority(t).CA), "name the authority by --redis-tls-ca"},
		"no TLS":    {[]string{"--redis", r.Nodes[0].TLSAddr()}, "set --redis-tls"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := run(t, nil, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, row.flags...)...)
			if code != 1 || !strings.Contains(errs, row.want) || strings.Contains(errs, "wrong-horse") {
				t.Errorf("exit %d: %s", code, errs)
			}
		})
	}
}
