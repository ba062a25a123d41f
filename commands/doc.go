// Package commands implements the Redis commands of Limitgate: it parses command lines
// into requests, passes them to the limiter, and writes the replies, in RESP2 or RESP3 as
// the client chose.
//
// It guarantees that a well-formed RL.CHECK always gets a decision, that replies keep
// their order, that a run of checks in one pipeline is decided as one batch, and that
// errors have the style of Redis' own and quote at most 64 bytes of client data. The
// replies to Redis' own commands are those of Redis 7; the tests compare them, and list
// the differences.
package commands
