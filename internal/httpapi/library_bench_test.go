package httpapi_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// BenchmarkLibrary compares HTTP libraries with a handler that answers the fields of a decision: the
// CPU of server and client together, of which the client is the same.
func BenchmarkLibrary(b *testing.B) {
	fields := [][2]string{{"RateLimit-Policy", `"tenant";q=100;w=1`}, {"RateLimit", `"tenant";r=99;t=1`}, {"RateLimit-Limit", "100"}, {"RateLimit-Remaining", "99"}, {"RateLimit-Reset", "1"}}
	std := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, f := range fields {
			w.Header().Set(f[0], f[1])
		}
	})}
	fast := &fasthttp.Server{NoDefaultServerHeader: true, NoDefaultContentType: true, Handler: func(ctx *fasthttp.RequestCtx) {
		for _, f := range fields {
			ctx.Response.Header.Set(f[0], f[1])
		}
	}}
	for name, serve := range map[string]func(net.Listener) error{"net_http": std.Serve, "fasthttp": fast.Serve} {
		b.Run(name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go func() { _ = serve(l) }()
			defer func() { _ = l.Close() }()
			before := cpu()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) { askAgain(b, l.Addr().String(), pb) })
			b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// askAgain sends requests on one connection.
func askAgain(b *testing.B, addr string, pb *testing.PB) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for pb.Next() {
		if _, err := io.WriteString(c, "GET /check HTTP/1.1\r\nHost: x\r\nX-Original-URI: /v1/payments\r\nX-Original-Method: POST\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n"); err != nil {
			b.Error(err)
			return
		}
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				b.Error(err)
				return
			}
			if len(line) == 2 {
				break
			}
		}
	}
}

// cpu returns the CPU time of this process so far.
func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
