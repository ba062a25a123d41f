package wrongport

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// TestReports: clients that speak another protocol make one line each, and others none.
func TestReports(t *testing.T) {
	plain := func(l net.Listener, log *slog.Logger) net.Listener { return Plain(l, log) }
	encrypted := func(l net.Listener, log *slog.Logger) net.Listener { return Encrypted(l, log) }
	grpc := func(l net.Listener, log *slog.Logger) net.Listener { return GRPC(l, log) }
	byTLS := func(l net.Listener, log *slog.Logger) net.Listener { return NewTLSListener(l, &tls.Config{}, log) }
	for _, row := range []struct {
		watch      func(net.Listener, *slog.Logger) net.Listener
		send, want string
		answer     string
	}{
		{plain, "GET / HTTP/1.1\r\n\r\n", "", ""},
		{plain, "*1\r\n$4\r\nPING\r\n", redis, redisAnswer},
		{plain, "\x16\x03\x01\x00\x01", withTLS, ""},
		{grpc, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", ""},
		{grpc, "POST /json HTTP/1.1\r\n\r\n", httpGRPC, http1Answer},
		{grpc, "*1\r\n$4\r\nPING\r\n", redisGRPC, grpcAnswer},
		{grpc, "\x16\x03\x01\x00\x01", withTLS, ""},
		{encrypted, "\x16\x03\x01\x00\x01", "", ""},
		{encrypted, "*1\r\n$4\r\nPING\r\n", withoutTLS, tlsAnswer},
		{encrypted, "GET / HTTP/1.1\r\n\r\n", withoutTLS, httpsAnswer},
		{encrypted, "PING\r\n", withoutTLS, ""},
		{byTLS, "\x16\x03\x01\x00\x01\x01", "", ""},
		{byTLS, "*1\r\n$4\r\nPING\r\n", withoutTLS, tlsAnswer},
	} {
		var log syncbuffer.Buffer
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l = row.watch(l, slog.New(slog.NewTextHandler(&log, nil)))
		for range 2 {
			if got := receive(t, l, row.send); got != row.answer {
				t.Errorf("%q: answered %q", row.send, got)
			}
		}
		_ = l.Close()
		lines := strings.Count(log.String(), "\n")
		if row.want == "" && lines > 0 || row.want != "" && (lines != 1 || !strings.Contains(log.String(), row.want) || !strings.Contains(log.String(), l.Addr().String())) {
			t.Errorf("%q: logged %q", row.send, log.String())
		}
	}
}

// receive makes a listener receive a text on a connection of its own, and returns the answer but for alerts
// of TLS.
func receive(t *testing.T, l net.Listener, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(c, text)
	accepted, acceptErr := l.Accept()
	if err = errors.Join(err, acceptErr); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	if over, ok := accepted.(*tlsConn); ok {
		_ = over.HandshakeContext(t.Context())
	} else {
		_, _ = io.ReadAll(accepted)
	}
	_ = accepted.Close()
	got, _ := io.ReadAll(c)
	_ = c.Close()
	if before, _, alert := strings.Cut(string(got), "\x15\x03"); alert {
		return before
	}
	return string(got)
}
