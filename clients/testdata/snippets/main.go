// Command readme calls the Go code of docs/clients.md.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"readme/connect"
	"readme/jobs"
	"readme/limited"
)

func main() {
	client := open(os.Args[1] + ":" + os.Args[2])
	fmt.Println("take")
	fmt.Scanln()
	for _, op := range []string{"later", "never", "GET /hourly"} {
		allowed, err := jobs.Admit(context.Background(), client, "snippet", op, "-")
		if err != nil {
			panic(err)
		}
		fmt.Print(allowed, " ")
	}
	mux := http.NewServeMux()
	tenant := func(*http.Request) string { return "snippet" }
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, pattern := range []string{"GET /hourly", "GET /free", "GET /" + strings.Repeat("long", 300)} {
		mux.Handle(pattern, limited.Handler(client, tenant, next))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", pattern[len("GET "):], nil))
		fmt.Print(w.Code, " ", w.Header().Get("Retry-After"), " ")
	}
	fmt.Println()
}

// open connects with TLS if the environment has a password.
func open(addr string) *redis.Client {
	password := os.Getenv("CLIENT_PASSWORD")
	if password == "" {
		return redis.NewClient(&redis.Options{Addr: addr})
	}
	ca, err := os.ReadFile("ca.pem")
	cert, err2 := tls.LoadX509KeyPair("cert.pem", "key.pem")
	if err != nil || err2 != nil {
		panic(fmt.Sprint(err, err2))
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return connect.Connect(addr, password, roots, cert)
}
