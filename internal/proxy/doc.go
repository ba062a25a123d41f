// Package proxy assembles a proxy from its settings: limits, store, backstop, decisions, the
// listeners for clients and for health. Only it and the commands know all of them.
package proxy
