package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/wrongport"
)

// TestWrongPort: commands that ask a limitgate show the answer of a port for HTTP.
func TestWrongPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	go func() { _ = server.Serve(wrongport.Plain(l, slog.New(slog.DiscardHandler))) }()
	defer func() { _ = server.Close() }()
	addr := l.Addr().String()
	want := "ERR this port speaks HTTP: Redis clients connect to the address of --listen (the answer of " + addr + ", which closed the connection)\n"
	for _, args := range []string{
		"check acme - - --addr ", "top --addr ", "stats --addr ", "limits --addr ",
		"replay --limits " + sampleLimits + " " + filepath.FromSlash("../../examples/access.log") + " --against ",
	} {
		_, errs, code := command(strings.Fields(args + addr)...)
		if code != exitError || !strings.HasSuffix(errs, want) {
			t.Errorf("%s: exit %d, without %q:\n%s", args, code, want, errs)
		}
	}
}

// TestWrongPortTLS: the answer of a port for TLS is shown with the flag for it.
func TestWrongPortTLS(t *testing.T) {
	err := &refusal{"ERR this port speaks TLS: connect by TLS, as redis-cli --tls does", io.EOF}
	const want = "as redis-cli --tls does (the answer of localhost:1: say --tls)"
	if got := explainDial("localhost:1", err); !strings.HasSuffix(got.Error(), want) {
		t.Errorf("%s, without %s", got, want)
	}
}

// TestRefusal: the failure of a connection shows an error that is all that the server has sent.
func TestRefusal(t *testing.T) {
	for sent, want := range map[string]string{
		"-ERR max number of clients reached\r\n": "ERR max number of clients reached",
		"-ERR unknown command\r\n+OK\r\n":        "EOF",
		"-ERR cut":                               "EOF",
		"+OK\r\n":                                "EOF",
		"":                                       "EOF",
		"-" + strings.Repeat("x", 2*mostRefusal) + "\r\n": "EOF",
	} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write([]byte(sent))
			_ = theirs.Close()
		}()
		c := &refusedConn{Conn: ours}
		var err error
		for err == nil {
			_, err = c.Read(make([]byte, 64))
		}
		if err.Error() != want {
			t.Errorf("%.40q: %v, want %s", sent, err, want)
		}
	}
}

// TestWrongPassword: the advice is right with a user that is named and without.
func TestWrongPassword(t *testing.T) {
	const want = "check --user, which is default unless given, and --password-file"
	if got := explainDial("localhost:1", redisError("WRONGPASS invalid username-password pair")); !strings.Contains(got.Error(), want) {
		t.Errorf("%s, without %s", got, want)
	}
}

// redisError is an error as a server replies it.
type redisError string

var _ redis.Error = redisError("")

// Error implements error.
func (e redisError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (redisError) RedisError() {}

// TestNoListener: where --addr has its default, the error of a connection that is refused names the flag.
func TestNoListener(t *testing.T) {
	err := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for addr, want := range map[string]string{
		defaultAddr:   "(is limitgate serve running at 127.0.0.1:6380? --addr names another address)",
		"127.0.0.1:1": "(is limitgate serve running at 127.0.0.1:1?)",
	} {
		if got := explainDial(addr, err); !strings.HasSuffix(got.Error(), want) {
			t.Errorf("%s: %v, want it to end with %s", addr, got, want)
		}
	}
}

// TestAddrOfListen: commands ask the limitgate of LIMITGATE_LISTEN, unless --addr names another.
func TestAddrOfListen(t *testing.T) {
	for _, row := range []struct{ words, want string }{
		{"check acme - -", "127.0.0.1:1?)"}, {"top", "127.0.0.1:1?)"}, {"stats", "127.0.0.1:1?)"}, {"check --addr 127.0.0.1:2 acme - -", "127.0.0.1:2?)"},
	} {
		var errs strings.Builder
		env := &environment{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &errs, environ: []string{"LIMITGATE_LISTEN=127.0.0.1:1"}}
		if code := execute(t.Context(), env, strings.Fields(row.words)); code != exitError || !strings.Contains(errs.String(), "is limitgate serve running at "+row.want) {
			t.Errorf("%s: exit %d: %s", row.words, code, errs.String())
		}
	}
}
