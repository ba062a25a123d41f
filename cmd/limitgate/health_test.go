package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// readyAnswer is a reply of /readyz.
const readyAnswer = `{"ready":true,"limits":"version abc","store":"memory"}`

// answering returns a handler that answers /readyz.
func answering(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// health runs limitgate health with an environment.
func health(environ []string, args ...string) (stdout, stderr string, code int) {
	var out, errs strings.Builder
	env := &environment{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, environ: environ}
	code = execute(context.Background(), env, append([]string{"health"}, args...))
	return out.String(), errs.String(), code
}

// TestHealth checks the line and the exit code for answers of an admin address.
func TestHealth(t *testing.T) {
	for name, row := range map[string]struct {
		handler http.HandlerFunc
		want    string // a part of the line
		code    int
	}{
		"ready":     {answering(200, readyAnswer), "ready: limits version abc, store memory\n", exitOK},
		"not ready": {answering(503, `{"ready":false,"store_error":"NOAUTH"}`), "is not ready: NOAUTH\n", exitError},
		"forbidden": {answering(503, `{"ready":false,"store":"redis","shards":[{"addr":"10.0.0.1:6379","breaker":"closed"},{"addr":"10.0.0.2:6379","breaker":"open","error":"the user lacks +evalsha"}]}`), "is not ready: 10.0.0.2:6379: the user lacks +evalsha\n", exitError},
		"drains":    {answering(503, `{"ready":false}`), "is not ready: it drains", exitError},
		"ready 503": {answering(503, readyAnswer), "is not ready", exitError},
		"stale":     {answering(200, `{"ready":true,"limits":"stale, version abc is in use","limits_error":"line 3: no rate","store":"memory"}`), "ready: limits stale, version abc is in use (line 3: no rate), store memory\n", exitOK},
		"open":      {answering(200, `{"ready":true,"limits":"version abc","store":"redis","store_error":"ping 10.0.0.1:6379: EOF","shards":[{"addr":"10.0.0.1:6379","breaker":"open","error":"EOF"},{"addr":"10.0.0.2:6379","breaker":"closed"}]}`), "ready, but the backstop decides for 10.0.0.1:6379: EOF; limits version abc, store redis\n", exitOK},
		"ping":      {answering(200, `{"ready":true,"limits":"version abc","store":"redis","store_error":"ping 10.0.0.1:6379: EOF","shards":[{"addr":"10.0.0.1:6379","breaker":"closed"}]}`), "ready, but the backstop decides for a node: ping 10.0.0.1:6379: EOF; limits version abc, store redis\n", exitOK},
		"topology":  {answering(200, `{"ready":true,"limits":"version abc","store":"redis","store_error":"fetch topology: 10.0.0.1:6379: it requires a password","shards":[{"addr":"10.0.0.1:6379","breaker":"closed"}]}`), "ready, and the store decides, but its nodes cannot be looked up: fetch topology: 10.0.0.1:6379: it requires a password; limits version abc, store redis\n", exitOK},
		"all nodes": {answering(200, `{"ready":true,"limits":"version abc","store":"cluster","store_error":"fetch topology: x","shards":[{"addr":"10.0.0.1:6379","breaker":"closed","error":"EOF"},{"addr":"10.0.0.2:6379","breaker":"open"}]}`), "ready, but the backstop decides for 10.0.0.2:6379: its breaker is open, and calls to 10.0.0.1:6379 have failed: EOF; limits version abc, store cluster\n", exitOK},
		"both open": {answering(200, `{"ready":true,"limits":"version abc","store":"cluster","store_error":"fetch topology: x","shards":[{"addr":"10.0.0.1:6379","breaker":"open","error":"EOF"},{"addr":"10.0.0.2:6379","breaker":"open"}]}`), "ready, but the backstop decides everything, as none of 2 nodes does: 10.0.0.1:6379: EOF; limits version abc, store cluster\n", exitOK},
		"late":      {answering(200, `{"ready":true,"limits":"version abc","store":"cluster","store_error":"x","shards":[{"addr":"10.0.0.1:6379","breaker":"closed","error":"late"},{"addr":"10.0.0.2:6379","breaker":"closed","error":"late"}]}`), "ready, but the backstop decides for each call that fails: those to 2 of 2 nodes have failed: 10.0.0.1:6379: late; limits version abc", exitOK},
		"two nodes": {answering(200, `{"ready":true,"limits":"version abc","store":"cluster","store_error":"ping 10.0.0.1:6379: EOF","shards":[{"addr":"10.0.0.1:6379","breaker":"closed","error":"EOF"},{"addr":"10.0.0.2:6379","breaker":"open"},{"addr":"10.0.0.3:6379","breaker":"closed"}]}`), "ready, but the backstop decides for 10.0.0.2:6379: its breaker is open, and calls to 10.0.0.1:6379 have failed: EOF; limits version abc, store cluster\n", exitOK},
		"no master": {answering(200, `{"ready":true,"limits":"version abc","store":"cluster","store_error":"5461 of 16384 hash slots have no master: give them to one","shards":[{"addr":"10.0.0.1:6379","breaker":"closed"}]}`), "ready, but the backstop decides for some of the tenants: 5461 of 16384 hash slots have no master: give them to one; limits version abc, store cluster\n", exitOK},
		"unreached": {answering(200, `{"ready":true,"limits":"version abc","store":"unreached","store_error":"connection refused"}`), "ready, but the backstop decides everything: connection refused; limits version abc, store unreached\n", exitOK},
		"envoy":     {answering(200, `{"ready":true,"limits":"version abc","rls_error":"shop.yaml:3: no unit; and 2 more","store":"memory"}`), "ready: limits version abc (of Envoy: shop.yaml:3: no unit; and 2 more), store memory\n", exitOK},
		"closed":    {answering(200, `{"ready":true,"limits":"version abc","store":"redis","shards":[{"addr":"10.0.0.1:6379","breaker":"closed","error":"OOM command not allowed"}]}`), "ready, but calls to 10.0.0.1:6379 have failed: OOM command not allowed; limits version abc, store redis\n", exitOK},
		"closed 2":  {answering(200, `{"ready":true,"limits":"version abc","store":"cluster","shards":[{"addr":"10.0.0.1:6379","breaker":"closed","error":"OOM x"},{"addr":"10.0.0.2:6379","breaker":"closed","error":"OOM y"},{"addr":"10.0.0.3:6379","breaker":"closed"}]}`), "ready, but calls to 2 of 3 nodes have failed: 10.0.0.1:6379: OOM x; limits", exitOK},
		"terminal":  {answering(200, `{"ready":true,"limits":"\u001b[2J\n","store":"`+strings.Repeat("x", 300)+`"}`), `limits "\x1b[2J\n", store ` + strings.Repeat("x", 256) + "\n", exitOK},
		"text":      {answering(200, "ok"), "not as a limitgate", exitError},
		"no admin":  {answering(400, "This port speaks the protocol of Redis, not HTTP: see --http.\n"), "is the address of a limitgate for Redis clients: name that of its --admin by --addr", exitError},
		"no field":  {answering(200, "{}"), "not as a limitgate", exitError},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }, "not as a limitgate", exitError},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(row.handler)
			defer s.Close()
			out, errs, code := health(nil, "--addr", s.Listener.Addr().String())
			if code != row.code || row.code == exitOK && !strings.HasPrefix(out, s.Listener.Addr().String()+" is ready") || !strings.Contains(out+errs, row.want) || strings.Count(out+errs, "\n") != 1 {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
}

// TestHealthTimeout: a proxy that accepts and is silent is not ready.
func TestHealthTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now()
	_, errs, code := health(nil, "--addr", l.Addr().String(), "--timeout", "100ms")
	if code != exitError || !strings.Contains(errs, "deadline exceeded") || time.Since(began) > 20*time.Second {
		t.Errorf("exit %d after %s: %s", code, time.Since(began), errs)
	}
}

// TestHealthSettings: without an address the settings name it, and whether it speaks TLS.
func TestHealthSettings(t *testing.T) {
	plain := httptest.NewServer(answering(200, readyAnswer))
	defer plain.Close()
	authority := redistest.NewAuthority(t)
	cert, key := authority.Issue("proxy", time.Now().Add(time.Hour))
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	encrypted := httptest.NewUnstartedServer(answering(200, readyAnswer))
	encrypted.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	encrypted.StartTLS()
	defer encrypted.Close()
	admin := plain.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(admin)
	file := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(file, []byte("admin: "+admin+"\nlisten: 0.0.0.0:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		environ, args []string
		want          string
		code          int
	}{
		"environment": {[]string{"LIMITGATE_ADMIN=0.0.0.0:" + port}, nil, "ready: ", exitOK},
		"a file":      {nil, []string{"--config", file}, "ready: ", exitOK},
		"its name":    {[]string{"LIMITGATE_CONFIG=" + file}, nil, "ready: ", exitOK},
		"TLS":         {[]string{"LIMITGATE_ADMIN=" + encrypted.Listener.Addr().String(), "LIMITGATE_TLS_CERT=" + cert, "LIMITGATE_TLS_KEY=" + key}, nil, "ready: ", exitOK},
		"not TLS":     {[]string{"LIMITGATE_ADMIN=" + encrypted.Listener.Addr().String()}, nil, "speaks TLS: say --tls, and name the file of its authority by --tls-ca", exitError},
		"verified":    {nil, []string{"--addr", encrypted.Listener.Addr().String(), "--tls", "--tls-ca", authority.CA}, "ready: ", exitOK},
		"unknown CA":  {nil, []string{"--addr", encrypted.Listener.Addr().String(), "--tls"}, "signed by an authority that is not known here: name the file of that by --tls-ca", exitError},
		"off":         {[]string{"LIMITGATE_ADMIN="}, nil, "switch the admin address off", exitError},
		"a mistake":   {[]string{"LIMITGATE_ADMIN=nowhere"}, nil, "env LIMITGATE_ADMIN", exitError},
		"no file":     {nil, []string{"--config", file + ".gone"}, "read settings file", exitError},
		"not by TLS":  {nil, []string{"--addr", admin, "--tls"}, "does not speak TLS: leave out --tls", exitError},
		"both":        {nil, []string{"--config", file, "--addr", admin}, "--addr and --config both name the address: leave one out", exitUsage},
		"too many":    {nil, []string{admin}, "is not a flag: write --addr in front of an address", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			if out, errs, code := health(row.environ, row.args...); code != row.code || !strings.Contains(out+errs, row.want) {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
}

func TestOwnAddress(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:9180": "127.0.0.1:9180", "0.0.0.0:9180": "127.0.0.1:9180", ":9180": "127.0.0.1:9180",
		"[::]:9180": "[::1]:9180", "10.0.0.1:9180": "10.0.0.1:9180", "[::1]:9180": "[::1]:9180",
	} {
		if got := ownAddress(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}

// TestVersion checks that both forms name what the linker sets.
func TestVersion(t *testing.T) {
	defer func(c, d string) { commit, date = c, d }(commit, date)
	commit, date = "0123abc", "2026-11-24T00:00:00Z"
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"--version"}} {
		out, errs, code := command(args...)
		for _, want := range []string{version, commit, date, "go1."} {
			if code != exitOK || !strings.Contains(out, want) {
				t.Errorf("%v without %s: exit %d: %s%s", args, want, code, out, errs)
			}
		}
	}
}
