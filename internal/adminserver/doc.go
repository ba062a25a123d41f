// Package adminserver serves health and metrics over HTTP, to a bounded number of
// connections: clients that hold connections do not lock out a probe.
package adminserver
