// Command readme calls the Go code of docs/clients.md.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"

	"readme/checkout"
	"readme/connect"
)

func main() {
	client := open(os.Args[1] + ":" + os.Args[2])
	fmt.Println("take")
	fmt.Scanln()
	later, err := checkout.Admit(context.Background(), client, "snippet", "later", "-")
	never, err2 := checkout.Admit(context.Background(), client, "snippet", "never", "-")
	if err != nil || err2 != nil {
		panic(fmt.Sprint(err, err2))
	}
	fmt.Println(later, never)
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
