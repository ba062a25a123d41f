package integration

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/tlsfiles"
)

// certified is a proxy with TLS, and the files that it reads.
type certified struct {
	*proxy
	folder string
}

// put replaces the file of a name by that at from.
func (c *certified) put(t *testing.T, name, from string) string {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.folder, name)
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

func certify(t *testing.T, a *redistest.Authority, clients string, more ...string) *certified {
	t.Helper()
	c := &certified{folder: t.TempDir()}
	cert, key := a.Issue("localhost", time.Now().Add(time.Hour))
	flags := []string{"--tls-cert", c.put(t, "cert", cert), "--tls-key", c.put(t, "key", key)}
	if clients != "" {
		flags = append(flags, "--tls-client-ca", c.put(t, "clients", clients))
	}
	c.proxy = serve(t, writeLimits(t, limitOf("1000/s")), append(flags, more...)...)
	return c
}

// client returns a client that trusts an authority, with a certificate of another one.
func (c *certified) client(t *testing.T, trusted *redistest.Authority, own *redistest.Authority, sessions tls.ClientSessionCache) *redis.Client {
	t.Helper()
	o := tlsfiles.ClientOptions{CA: trusted.CA}
	if own != nil {
		o.Cert, o.Key = own.Issue("service-a", time.Now().Add(time.Hour))
	}
	files, err := tlsfiles.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	config, err := files.Config("localhost")
	if err != nil {
		t.Fatal(err)
	}
	config.ClientSessionCache = sessions
	client := redis.NewClient(&redis.Options{Addr: c.addr, TLSConfig: config, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// certificateEnd returns the end of a certificate, as the metrics have it.
func (p *proxy) certificateEnd(t *testing.T, certificate string) time.Time {
	t.Helper()
	line := regexp.MustCompile(`limitgate_tls_certificate_not_after_timestamp_seconds\{certificate="` + certificate + `"\} (\S+)`).FindStringSubmatch(p.get("/metrics"))
	if line == nil {
		t.Fatalf("the metrics have no end of certificate %s", certificate)
	}
	seconds, err := strconv.ParseFloat(line[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(int64(seconds), 0)
}

// insecureWeb returns a client of https that accepts any certificate.
func insecureWeb(t *testing.T) *http.Client {
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(web.CloseIdleConnections)
	return web
}

// TestTLS: clients connect by TLS only, and to both addresses.
func TestTLS(t *testing.T) {
	a, other := redistest.NewAuthority(t), redistest.NewAuthority(t)
	p := certify(t, a, "")
	if v, err := check(p.client(t, a, nil, nil), "t", "-", "-"); err != nil || !v.allowed {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := check(p.client(t, other, nil, nil), "t", "-", "-"); err == nil || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("a client of another authority: %v", err)
	}
	if _, err := check(p.proxy.client(), "t", "-", "-"); err == nil {
		t.Error("a client without TLS gets a decision")
	}
	files, err := tlsfiles.NewClient(tlsfiles.ClientOptions{CA: a.CA})
	if err != nil {
		t.Fatal(err)
	}
	config, err := files.Config("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer web.CloseIdleConnections()
	reply, err := web.Get("https://" + p.admin + "/healthz")
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", reply, err)
	}
	_ = reply.Body.Close()
	p.web = web
	if end := p.certificateEnd(t, "clients"); time.Until(end) < 50*time.Minute || time.Until(end) > time.Hour {
		t.Errorf("the end of the certificate is %s in the metrics", end)
	}
	out, errs, code := run(t, nil, "check", "--addr", p.addr, "--tls", "--tls-ca", a.CA, "t", "-", "-")
	if code != 0 || !strings.HasPrefix(out, "admitted") {
		t.Errorf("check: exit %d: %s%s", code, out, errs)
	}
}

// TestClientCertificates: clients need a certificate of the authority, and a proxy that asks
// for one may listen on any address.
func TestClientCertificates(t *testing.T) {
	a, clients, other := redistest.NewAuthority(t), redistest.NewAuthority(t), redistest.NewAuthority(t)
	p := certify(t, a, clients.CA)
	if v, err := check(p.client(t, a, clients, nil), "t", "-", "-"); err != nil || !v.allowed {
		t.Errorf("%+v, %v", v, err)
	}
	for name, own := range map[string]*redistest.Authority{"none": nil, "another authority's": other} {
		if v, err := check(p.client(t, a, own, nil), "t", "-", "-"); err == nil {
			t.Errorf("a client with a certificate: %s: %+v", name, v)
		}
	}
	ended, endedKey := clients.Issue("service-a", time.Now().Add(-time.Minute))
	pair, err := tls.LoadX509KeyPair(ended, endedKey)
	if err != nil {
		t.Fatal(err)
	}
	late := redis.NewClient(&redis.Options{Addr: p.addr, TLSConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}, MaxRetries: -1, DialerRetries: 1, PoolSize: 1})
	defer func() { _ = late.Close() }()
	if v, err := check(late, "t", "-", "-"); err == nil || !strings.Contains(err.Error(), "expired certificate") {
		t.Errorf("a client with a certificate that has expired: %+v, %v", v, err)
	}
	cert, key := a.Issue("localhost", time.Now().Add(time.Hour))
	if _, errs, code := run(t, nil, "serve", "--listen", "0.0.0.0:0", "--admin", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key); code != 64 || !strings.Contains(errs, "or --tls-client-ca") {
		t.Errorf("any address without client certificates: exit %d: %s", code, errs)
	}
	open := serve(t, "", "--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", clients.CA)
	if open.addr == "" {
		t.Error("it does not listen")
	}
}

// TestCertificatesAreReplaced: new connections get the present certificate, and need one of
// the present authority even if they resume a session; open connections stay; files that do
// not fit are reported, and the earlier ones stay in use.
func TestCertificatesAreReplaced(t *testing.T) {
	a, b, clients, others := redistest.NewAuthority(t), redistest.NewAuthority(t), redistest.NewAuthority(t), redistest.NewAuthority(t)
	p := certify(t, a, clients.CA)
	sessions := tls.NewLRUClientSessionCache(8)
	open := p.client(t, a, clients, sessions)
	if _, err := check(open, "t", "-", "-"); err != nil {
		t.Fatal(err)
	}
	cert, key := b.Issue("localhost", time.Now().Add(2*time.Hour))
	p.put(t, "cert", cert) // beside the key of another one
	eventually(t, "a line about the files", func() bool {
		_, _ = check(p.client(t, a, clients, nil), "t", "-", "-")
		return strings.Contains(p.output(), "failed to read the TLS files, using the earlier ones")
	})
	p.put(t, "key", key)
	eventually(t, "the new certificate", func() bool {
		_, err := check(p.client(t, b, clients, nil), "t", "-", "-")
		return err == nil
	})
	p.web = insecureWeb(t)
	if end := p.certificateEnd(t, "clients"); time.Until(end) < 90*time.Minute {
		t.Errorf("the metrics have the end %s of the certificate before", end)
	}
	p.put(t, "clients", others.CA)
	eventually(t, "the new authority", func() bool {
		_, err := check(p.client(t, b, others, nil), "t", "-", "-")
		return err == nil
	})
	if _, err := check(p.client(t, b, clients, sessions), "t", "-", "-"); err == nil {
		t.Error("a certificate of the former authority is accepted")
	}
	if v, err := check(open, "t", "-", "-"); err != nil || !v.allowed {
		t.Errorf("the open connection: %+v, %v", v, err)
	}
}

// TestCertificateIsReplacedUnderLoad: clients that connect all the time get the former certificate or
// the next one, and no error, while certificate and key are replaced one after the other.
func TestCertificateIsReplacedUnderLoad(t *testing.T) {
	a := redistest.NewAuthority(t)
	p := certify(t, a, "")
	names := make(chan string, 1)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer func() {
		cancel()
		all.Wait()
	}()
	files, err := tlsfiles.NewClient(tlsfiles.ClientOptions{CA: a.CA})
	if err != nil {
		t.Fatal(err)
	}
	config, err := files.Config("localhost")
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				d := tls.Dialer{Config: config}
				conn, err := d.DialContext(ctx, "tcp", p.addr)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Errorf("connect: %v", err)
					cancel()
					return
				}
				serial := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
				_ = conn.Close()
				select {
				case names <- serial:
				case <-ctx.Done():
				}
			}
		})
	}
	seen := func() string {
		select {
		case name := <-names:
			return name
		case <-ctx.Done():
			t.FailNow()
			return ""
		}
	}
	first := seen()
	for range 3 {
		cert, key := a.Issue("localhost", time.Now().Add(time.Hour))
		p.put(t, "cert", cert)
		for range 20 { // handshakes between the two
			seen()
		}
		p.put(t, "key", key)
		next := first
		eventually(t, "another certificate", func() bool { next = seen(); return next != first })
		first = next
	}
}

// TestRedisClientCertificate: a proxy shows its certificate to a Redis that asks for one, and the
// metrics have its end. Without it the proxy does not start.
func TestRedisClientCertificate(t *testing.T) {
	a := redistest.NewAuthority(t)
	r := redistest.Start(t, append(a.Args(), "--tls-auth-clients", "yes")...)
	cert, key := a.Issue("limitgate", time.Now().Add(time.Hour))
	flags := []string{"--redis", r.TLSAddr(), "--redis-tls", "--redis-tls-ca", a.CA}
	p := serve(t, writeLimits(t, limitOf("10/366d")), append(append(flags, "--redis-tls-cert", cert, "--redis-tls-key", key), exact...)...)
	checkExactly(t, p, "t", 10)
	if end := p.certificateEnd(t, "redis"); time.Until(end) < 50*time.Minute || time.Until(end) > time.Hour {
		t.Errorf("the end of the certificate is %s in the metrics", end)
	}
	if _, errs, code := run(t, nil, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, flags...)...); code != 1 || !strings.Contains(errs, "certificate required") {
		t.Errorf("without a certificate: exit %d: %s", code, errs)
	}
}

// TestOldTLS: TLS below 1.2 is refused.
func TestOldTLS(t *testing.T) {
	a := redistest.NewAuthority(t)
	p := certify(t, a, "")
	d := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}}
	if conn, err := d.DialContext(context.Background(), "tcp", p.addr); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 is accepted")
	}
}
