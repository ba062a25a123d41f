package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestMaxConns checks that a client over MaxConns gets an error, and that a connection
// that is closed makes room for another.
func TestMaxConns(t *testing.T) {
	r := start(t, Options{MaxConns: 2})
	a, b := r.dial(), r.dial()
	a.ping()
	b.ping()
	for range 3 {
		r.dial().expectEnd("-ERR max number of clients reached\r\n")
	}
	if got := r.server.Stats(); got.Connections != 2 || got.Total != 2 || got.Rejected != 3 {
		t.Errorf("stats %+v", got)
	}
	a.Close()
	r.closedSession()
	// The connection is counted until shortly after the session is closed.
	await(t, "the place is free", func() bool { return r.server.Stats().Connections == 1 })
	r.dial().ping()
	b.ping()
}

// failingListener fails on the nth call of Accept, for some n, and records the times of
// the calls.
type failingListener struct {
	*pipeListener
	fails func(n int) bool
	mu    sync.Mutex // guards asked
	asked []time.Time
}

func (l *failingListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	n := len(l.asked)
	l.asked = append(l.asked, time.Now())
	l.mu.Unlock()
	if l.fails(n) {
		return nil, errors.New("accept4: too many open files")
	}
	return l.pipeListener.Accept()
}

// TestAcceptBackoff checks that a failure to accept is followed by a pause, which grows,
// and for which a drain does not wait.
func TestAcceptBackoff(t *testing.T) {
	logged := capture(t)
	synctest.Test(t, func(t *testing.T) {
		ln := &failingListener{pipeListener: newPipeListener(), fails: func(n int) bool { return n != 10 && n < 13 }}
		r := startOn(t, Options{}, ln)
		for range 2 {
			writeAll(t, ln.dial(), "QUIT\r\n")
			r.closedSession()
		}
		ln.mu.Lock()
		defer ln.mu.Unlock()
		var pauses []time.Duration
		for i := range 13 {
			pauses = append(pauses, ln.asked[i+1].Sub(ln.asked[i])/time.Millisecond)
		}
		if want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 0, 5, 10}; !slices.Equal(pauses, want) {
			t.Errorf("pauses %v, want %v", pauses, want)
		}
		if got := r.server.Stats().AcceptErrors; got != 12 {
			t.Errorf("%d accept errors, want 12", got)
		}
	})
	if got := strings.Count(logged(), "cannot accept a connection"); got != 12 {
		t.Errorf("logged %d times:\n%s", got, logged())
	}
	synctest.Test(t, func(t *testing.T) {
		ln := &failingListener{pipeListener: newPipeListener(), fails: func(int) bool { return true }}
		r := startOn(t, Options{}, ln)
		time.Sleep(10*time.Second + time.Millisecond)
		before := time.Now()
		if err := r.end(); err != nil || time.Since(before) != 0 {
			t.Errorf("Run: %v after %v", err, time.Since(before))
		}
	})
}

// selfSigned returns TLS settings for both ends.
func selfSigned(t *testing.T) (serverSide, clientSide *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"limitgate.test"},
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: pool, ServerName: "limitgate.test"}
}

// TestTLS checks the same under TLS: batches, rejected clients, half-closing, the maximum
// of connections, and the drain.
func TestTLS(t *testing.T) {
	serverSide, clientSide := selfSigned(t)
	r := startOn(t, Options{MaxConns: 2}, tls.NewListener(listen(t), serverSide))
	dial := func() *client {
		nc, err := tls.Dial("tcp", r.addr, clientSide)
		if err != nil {
			t.Fatal(err)
		}
		return newClient(t, nc)
	}
	idle := dial()
	idle.ping()
	pipeline := strings.Repeat(command("ECHO", strings.Repeat("t", 1000)), 300)
	half := dial()
	go func() {
		half.send(pipeline)
		if err := half.Conn.(*tls.Conn).CloseWrite(); err != nil {
			t.Error(err)
		}
	}()
	half.expectEnd(pipeline)
	r.closedSession()
	await(t, "the place is free", func() bool { return r.server.Stats().Connections == 1 })
	wrong := dial()
	if _, err := tls.Dial("tcp", r.addr, clientSide); err == nil {
		t.Error("a third client was accepted")
	}
	wrong.send("PING\r\n*x\r\nPING\r\n")
	wrong.expectEnd("+PONG\r\n-ERR Protocol error: invalid multibulk length\r\n")
	r.stop()
	idle.expectEnd("")
}

// TestTLSHandshakeTimeout checks that a client that does not shake hands is cut off, and
// that a drain does not wait for one.
func TestTLSHandshakeTimeout(t *testing.T) {
	serverSide, _ := selfSigned(t)
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		r := startOn(t, Options{}, tls.NewListener(ln, serverSide))
		expectEndAfter(t, ln.dial(), handshakeTimeout)
		if got := r.server.Stats().TimedOut; got != 1 {
			t.Errorf("%d timed out, want 1", got)
		}
		nc := ln.dial()
		synctest.Wait()
		before := time.Now()
		if err := r.end(); err != nil || time.Since(before) != 0 {
			t.Errorf("Run: %v after %v", err, time.Since(before))
		}
		nc.Close()
	})
}
