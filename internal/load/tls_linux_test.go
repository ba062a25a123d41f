package load

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// serveTLS is serve with TLS, and returns the settings of its clients.
func serveTLS(t *testing.T, answer func(in *bufio.Reader, out net.Conn)) (addr string, client *tls.Config) {
	t.Helper()
	authority := redistest.NewAuthority(t)
	pair, err := tls.LoadX509KeyPair(authority.Issue("localhost", time.Now().Add(time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(authority.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, listener, answer), &tls.Config{RootCAs: roots, ServerName: "localhost"}
}

// TestEncryptedRequestsAreAllAnswered has a server send each reply in a record of its own:
// the poller reports one socket for many records.
func TestEncryptedRequestsAreAllAnswered(t *testing.T) {
	addr, client := serveTLS(t, each(admission))
	for _, test := range []struct {
		conns, pipeline int
		requests        int64
	}{{1, 1, 10}, {3, 16, 1000}, {2, 500, 5000}} {
		g, err := Dial(Options{
			Targets: []Target{{Addr: addr, Conns: test.conns, Keys: Each(10)}},
			Request: NewRequest("RL.CHECK", "t"+Hole), Shape: Decision, Pipeline: test.pipeline, TLS: client,
		})
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := g.Run(t.Context(), Load{Requests: test.requests})
		g.Close()
		if err != nil {
			t.Fatal(err)
		}
		if outcome.Admitted != test.requests || outcome.Latency.TotalCount() != test.requests {
			t.Errorf("%+v: outcome = %+v", test, outcome.Tally)
		}
	}
}

func TestDialRefusesAnUntrustedServer(t *testing.T) {
	addr, client := serveTLS(t, each(admission))
	client.RootCAs = x509.NewCertPool()
	g, err := Dial(Options{Targets: []Target{{Addr: addr, Conns: 1, Keys: Hot(1)}}, Request: NewRequest("PING"), Pipeline: 1, TLS: client})
	if err == nil {
		g.Close()
	}
	if unknown := (x509.UnknownAuthorityError{}); !errors.As(err, &unknown) {
		t.Errorf("error = %v, want one of an unknown authority", err)
	}
}

func TestEveryConnectionLogsIn(t *testing.T) {
	// The server answers requests only after the right password.
	answer := func(in *bufio.Reader, out net.Conn) {
		if word, err := skipRequest(in); err != nil || word != "secret" {
			_, _ = io.WriteString(out, "-WRONGPASS invalid username-password pair\r\n")
			return
		}
		_, _ = io.WriteString(out, "+OK\r\n")
		each(admission)(in, out)
	}
	plain := serve(t, answer)
	encrypted, client := serveTLS(t, answer)
	for name, o := range map[string]Options{
		"plain": {Targets: []Target{{Addr: plain, Conns: 3, Keys: Hot(1)}}},
		"TLS":   {Targets: []Target{{Addr: encrypted, Conns: 3, Keys: Hot(1)}}, TLS: client},
	} {
		t.Run(name, func(t *testing.T) {
			o.Request, o.Shape, o.Pipeline = NewRequest("RL.CHECK", "t"+Hole), Decision, 4
			o.Login = NewRequest("AUTH", "bench", "secret")
			g, err := Dial(o)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			outcome, err := g.Run(t.Context(), Load{Requests: 100})
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Admitted != 100 {
				t.Errorf("outcome = %+v", outcome.Tally)
			}
			o.Login = NewRequest("AUTH", "bench", "guess")
			if _, err := Dial(o); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
				t.Errorf("error = %v, want WRONGPASS", err)
			}
		})
	}
}
