// Package integration holds the tests of the whole: the real binary, real
// Redis servers and clusters, real clients.
package integration
