// Package resp reads the RESP2 replies of a Redis node, and writes commands for it. The
// reader's memory is bounded, whatever a node sends. See
// https://redis.io/docs/latest/develop/reference/protocol-spec/.
package resp
