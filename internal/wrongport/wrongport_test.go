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
	byTLS := func(l net.Listener, log *slog.Logger) net.Listener { return NewTLSListener(l, &tls.Config{}, log) }
	for _, row := range []struct {
		watch      func(net.Listener, *slog.Logger) net.Listener
		send, want string
	}{
		{plain, "GET / HTTP/1.1\r\n\r\n", ""},
		{plain, "*1\r\n$4\r\nPING\r\n", redis},
		{plain, "\x16\x03\x01\x00\x01", withTLS},
		{encrypted, "\x16\x03\x01\x00\x01", ""},
		{encrypted, "*1\r\n$4\r\nPING\r\n", withoutTLS},
		{byTLS, "\x16\x03\x01\x00\x01\x01", ""},
		{byTLS, "*1\r\n$4\r\nPING\r\n", withoutTLS},
	} {
		var log syncbuffer.Buffer
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l = row.watch(l, slog.New(slog.NewTextHandler(&log, nil)))
		for range 2 {
			receive(t, l, row.send)
		}
		_ = l.Close()
		lines := strings.Count(log.String(), "\n")
		if row.want == "" && lines > 0 || row.want != "" && (lines != 1 || !strings.Contains(log.String(), row.want) || !strings.Contains(log.String(), l.Addr().String())) {
			t.Errorf("%q: logged %q", row.send, log.String())
		}
	}
}

// receive makes a listener receive a text on a connection of its own.
func receive(t *testing.T, l net.Listener, text string) {
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
	_, _ = accepted.Close(), c.Close()
}
