// Package clients runs real Redis clients, of many languages, against the real binary,
// and records the results.
//
// Each client has a small driver in a folder of its language. All drivers take the same
// steps: a hundred checks one by one, a hundred in one pipeline, a denial, an error, a
// command of another limiter, and a check after the connection was killed. `make test`
// runs those that need only Go and redis-cli, `make clients` runs all, and the code of
// docs/clients.md, and writes the matrix of that page. `make clients SECURE=1` does so with TLS,
// users and certificates on both sides of the proxy.
package clients
