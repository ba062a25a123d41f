// Package integration holds end-to-end tests, with the real binary, real Redis servers
// and clusters, and real clients.
package integration
