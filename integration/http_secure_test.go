package integration

import (
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/limitgate/limitgate/internal/jwks/jwkstest"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/tlsfiles"
)

var listeningWithHTTP = regexp.MustCompile(`msg=listening addr=(\S+) admin=(\S+) http=(\S+)`)

// serveHTTP starts a limitgate that answers over HTTP, and returns the address.
func serveHTTP(t *testing.T, limits string, flags ...string) (p *proxy, addr string) {
	t.Helper()
	p, found := launch(t, exec.Command(binaries.release, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--http", "127.0.0.1:0", "--limits", limits, "--retry-jitter", "0"}, flags...)...), listeningWithHTTP)
	p.addr, p.admin = found[1], found[2]
	return p, found[3]
}

// askHTTP sends a request with headers, each NAME: VALUE, and returns the status and the fields.
func askHTTP(t *testing.T, c *http.Client, method, url, body string, headers ...string) (status int, h http.Header) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	a, err := c.Do(r)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = a.Body.Close() }()
	return a.StatusCode, a.Header
}

// TestHTTPSecured: over TLS a certificate makes a client a user, as over RESP, and without one there
// is no answer. Users that are replaced count for the next request on an open connection.
func TestHTTPSecured(t *testing.T) {
	a := redistest.NewAuthority(t)
	cert, key := a.Issue("localhost", time.Now().Add(time.Hour))
	file := filepath.Join(t.TempDir(), "users.acl")
	users := func(text string) {
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	users("user a on certificate=dns:service-a ~a +@check\nuser b on " + userRule("two") + " ~b +@check +@read\n")
	p, addr := serveHTTP(t, writeLimits(t, limitOf("1000/s")), "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", a.CA, "--users", file)
	client := func(o tlsfiles.ClientOptions) *http.Client {
		files, err := tlsfiles.NewClient(o)
		if err != nil {
			t.Fatal(err)
		}
		config, err := files.Config("localhost")
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 10 * time.Second}
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	clientCert, clientKey := a.Issue("service-a", time.Now().Add(time.Hour))
	known := client(tlsfiles.ClientOptions{CA: a.CA, Cert: clientCert, Key: clientKey})
	const url, body = "/v1/check", `{"tenant":"a"}`
	for _, row := range []struct {
		name   string
		client *http.Client
		body   string
		header string
		want   int
	}{
		{"a certificate", known, body, "", 200},
		{"its own tenant", known, "{}", "", 200},
		{"another tenant", known, `{"tenant":"b"}`, "", 403},
		{"another user beside a certificate", known, `{"tenant":"b"}`, "Authorization: Basic Yjp0d28=", 200},
		{"a wrong password", known, body, "Authorization: Basic Yjp0aHJlZQ==", 401},
		{"no certificate", client(tlsfiles.ClientOptions{CA: a.CA}), body, "", 0},
		{"no TLS", &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{}}}, body, "", 400},
	} {
		scheme := "https://"
		if row.name == "no TLS" {
			scheme = "http://"
		}
		headers := []string{"Content-Type: application/json"}
		if row.header != "" {
			headers = append(headers, row.header)
		}
		if status, _ := askHTTP(t, row.client, "POST", scheme+addr+url, row.body, headers...); status != row.want && (row.want != 400 || status != 0) {
			t.Errorf("%s: %d, want %d", row.name, status, row.want)
		}
	}
	users("user b on " + userRule("two") + " ~b +@check +@read\n")
	eventually(t, "users without a", func() bool {
		status, _ := askHTTP(t, known, "POST", "https://"+addr+url, body)
		return status == 401
	})
	if log := p.output(); strings.Contains(log, "two") {
		t.Error("a password is in the log")
	}
}

// TestHTTPTenants: the tenant of a request at /check is that of a verified token, or of the hash of a
// key, and never of a header that is there twice or a token that cannot be verified.
func TestHTTPTenants(t *testing.T) {
	signer := jwkstest.NewSigner(t, "k", jwt.SigningMethodES256)
	keys := jwkstest.Write(t, jwkstest.Set(t, signer.JWK(t)))
	token := signer.Token(t, nil)
	limits := writeLimits(t, "version: 1\ndefault_plan: p\nplans:\n  p: [{id: one, by: [tenant], rate: 1/h, algorithm: fixed_window, on_error: open}]\n  q: [{id: two, by: [tenant], rate: 2/h, algorithm: fixed_window, on_error: open}]\ntenants:\n  acme: {plan: q}\n")
	_, addr := serveHTTP(t, limits, "--http-gateway", "nginx", "--http-tenant-header", "Authorization", "--jwt-jwks", keys,
		"--jwt-issuer", "issuer", "--jwt-audience", "limitgate", "--users", gatewayUsers(t))
	const gateway, uri = "X-Limitgate-Authorization: Basic Z2F0ZXdheTp0d28=", "X-Original-URI: /"
	ask := func(headers ...string) int {
		status, _ := askHTTP(t, http.DefaultClient, "GET", "http://"+addr+"/check", "", append(headers, uri)...)
		return status
	}
	for _, row := range []struct {
		headers []string
		want    int
	}{
		{[]string{gateway, "Authorization: Bearer " + token}, 200},
		{[]string{gateway, "Authorization: bearer  " + token}, 200}, // the same tenant, which has two
		{[]string{gateway, "Authorization: BEARER " + token}, 429},
		{[]string{gateway, "Authorization: Bearer " + token[:len(token)-2]}, 200}, // anonymous
		{[]string{gateway, "Authorization: Bearer x"}, 429},                       // anonymous, too
		{[]string{gateway, "Authorization: Bearer " + token, "Authorization: Bearer " + token}, 429},
		{[]string{"Authorization: Bearer " + token}, 401}, // that of a client is none of a gateway
	} {
		if status := ask(row.headers...); status != row.want {
			t.Errorf("%.90s: %d, want %d", strings.Join(row.headers, ", "), status, row.want)
		}
	}
}

// gatewayUsers writes a file with a user that may check every tenant.
func gatewayUsers(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte("user gateway on "+userRule("two")+" ~* +@check\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHTTPFormats: the fields of each format, and addresses of trusted networks, by the real program.
func TestHTTPFormats(t *testing.T) {
	limits := writeLimits(t, "version: 1\nshared: [{id: one, by: [ip], rate: 5/m, algorithm: fixed_window, on_error: open}]\n")
	for format, fields := range map[string]map[string]string{
		"draft-11": {"RateLimit-Policy": `"one";q=5;w=60`, "RateLimit-Remaining": "4"},
		"draft-03": {"X-RateLimit-Limit": `5, 5;w=60;name="one"`, "X-RateLimit-Remaining": "4", "RateLimit": ""},
		"legacy":   {"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "4", "RateLimit": ""},
		"off":      {"X-RateLimit-Limit": "", "RateLimit": ""},
	} {
		_, addr := serveHTTP(t, limits, "--http-headers", format, "--http-trusted-cidrs", "127.0.0.0/8,10.0.0.0/8", "--http-gateway", "nginx")
		ask := func(forwarded string) (int, http.Header) {
			return askHTTP(t, http.DefaultClient, "GET", "http://"+addr+"/check", "", "X-Original-URI: /", "X-Forwarded-For: "+forwarded)
		}
		status, h := ask("6.6.6.6, 203.0.113.7, 10.1.2.3")
		for name, want := range fields {
			if got := h.Get(name); status != 200 || got != want {
				t.Errorf("%s: %d, %s %q, want %q", format, status, name, got, want)
			}
		}
		for n := range 5 { // the same address, whatever stands before it
			status, h = ask([]string{"7.7.7.7, 203.0.113.7", "203.0.113.7, 10.9.9.9", "garbage, 203.0.113.7", "203.0.113.7", "1.1.1.1,203.0.113.7"}[n])
		}
		if status != 429 || h.Get("Retry-After") == "" {
			t.Errorf("%s: %d, Retry-After %q", format, status, h.Get("Retry-After"))
		}
		if reset := h.Get("X-RateLimit-Reset"); format == "legacy" && len(reset) != len("1795458099") {
			t.Errorf("legacy: the reset is %s, want seconds since the epoch", reset)
		}
		if status, _ := ask("203.0.113.8"); status != 200 {
			t.Errorf("%s: another address gets %d", format, status)
		}
	}
}

// TestHTTPStoreDies: while its Redis is stopped, and then killed, a proxy answers over HTTP in time, by
// decisions and never by 5xx.
func TestHTTPStoreDies(t *testing.T) {
	node := redistest.Start(t)
	limits := writeLimits(t, "version: 1\ndefault_plan: p\nplans:\n  p: [{id: hourly, by: [tenant], rate: 20/h, algorithm: fixed_window, on_error: open}, {id: strict, by: [tenant, op], when: {op: \"POST /strict*\"}, rate: 20/h, algorithm: fixed_window, on_error: closed}]\n")
	_, addr := serveHTTP(t, limits, "--redis", node.Addr, "--http-gateway", "nginx")
	ask := func(tenant, path string) int {
		since := time.Now()
		status, _ := askHTTP(t, http.DefaultClient, "GET", "http://"+addr+"/check?tenant="+tenant, "", "X-Original-URI: "+path, "X-Original-Method: POST")
		if took := time.Since(since); took > 5*time.Second {
			t.Errorf("an answer takes %v", took)
		}
		return status
	}
	if status := ask("a", "/"); status != http.StatusOK {
		t.Fatalf("with its store: %d", status)
	}
	for round, sick := range []func(){node.Stop, node.Kill} {
		sick()
		open, closed := "open"+strconv.Itoa(round), "closed"+strconv.Itoa(round)
		codes := map[int]int{}
		for range 60 {
			codes[ask(open, "/")]++
			codes[ask(closed, "/strict")]++
		}
		if codes[200] == 0 || codes[429] == 0 || codes[200]+codes[429] != 120 {
			t.Errorf("without its store: %v, want 200 and 429 alone", codes)
		}
		if codes[200] > 20 { // the share of one proxy is the whole limit
			t.Errorf("%d of 20 admitted", codes[200])
		}
	}
}
