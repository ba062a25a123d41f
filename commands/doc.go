// Package commands is the Redis face of Limitgate: it turns command lines into
// requests, lets the limiter decide them, and writes the replies, in RESP2 or
// RESP3 as the client asked.
//
// It promises that a well-formed RL.CHECK always gets a decision, that replies
// keep their order, that a run of checks in one pipeline is decided as one
// batch, and that errors read like Redis's own and quote no more than 64 bytes
// of what was sent. To the commands that are Redis's own it replies as Redis 7
// does, to which its tests hold it; what differs is listed there.
package commands
