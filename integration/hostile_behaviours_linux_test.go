package integration

import (
	"fmt"
	"strings"
	"time"
)

// leaving is the way in which an attacker ends a connection after its text.
type leaving int

const (
	staying leaving = iota
	byClose         // unread replies are lost
	byHalf          // it sends FIN and stays
	byReset         // it sends RST
)

// behaviour is the behaviour of a hostile client: on a connection it sends text some
// times, and leaves or stays. A client that has left, or whose connection was closed,
// connects again.
type behaviour struct {
	name   string
	text   string
	piece  int           // bytes of text sent in a turn, 0 for as many as the socket takes
	times  int           // how often text is sent on a connection, 0 for once
	every  time.Duration // interval between turns
	reads  int           // bytes of replies read in a turn, 0 for a client that does not read
	leaves leaving
	admin  bool // it connects to the admin listener
}

// always is more often than any client gets turns.
const always = 1 << 20

// repeated is a command n times, as a pipeline.
func repeated(n int, words ...string) string { return strings.Repeat(bulk(words...), n) }

// Replies that are not read. Each text is sent again every second, so that a proxy that
// keeps reading keeps buffering.
var unreadBehaviours = []behaviour{
	{name: "unread ECHO of 60 KB", text: repeated(4, "ECHO", strings.Repeat("e", 60_000)), times: always, every: time.Second},
	{name: "unread COMMAND DOCS", text: repeated(190, "COMMAND", "DOCS"), times: always, every: time.Second},
	{name: "slowly read COMMAND DOCS", text: repeated(190, "COMMAND", "DOCS"), times: always, every: 200 * time.Millisecond, reads: 512},
	{name: "unread CLIENT LIST", text: repeated(50, "CLIENT", "LIST"), times: always, every: time.Second},
	{name: "unread RL.LIMITS", text: repeated(100, "RL.LIMITS"), times: always, every: time.Second},
	{name: "unread RL.EXPLAIN", text: repeated(100, "RL.EXPLAIN", "hostile", "op", "198.51.100.1"), times: always, every: time.Second},
	{name: "unread INFO", text: repeated(100, "INFO"), times: always, every: time.Second},
	{name: "unread RL.CHECK", text: repeated(100, "RL.CHECK", "hostile", "op", "-", "HEADERS"), times: always, every: time.Second},
	{
		name:  "unread EXEC of COMMAND DOCS",
		text:  bulk("MULTI") + repeated(100, "COMMAND", "DOCS") + bulk("EXEC"),
		times: always, every: time.Second,
	},
	{
		name:  "unread errors",
		text:  repeated(100, "NO"+strings.Repeat("n", 200), strings.Repeat("a", 200)),
		times: always, every: time.Second,
	},
}

// Invalid and incomplete commands.
var malformedBehaviours = []behaviour{
	{name: "a protocol error and staying", text: "*abc\r\n", every: time.Second},
	{name: "errors and reading nothing", text: strings.Repeat("e", 100) + "\r\n*abc\r\n", times: always, every: 200 * time.Millisecond},
	{name: "half a command and silence", text: "*3\r\n$8\r\nRL.CHE", every: time.Second},
	{name: "half a command of 1 MiB", text: "*1000\r\n" + strings.Repeat(words(60_000), 15), every: 100 * time.Millisecond},
	{name: "a byte at a time", text: bulk("RL.CHECK", "hostile", "op", "-"), piece: 1, times: always, every: 100 * time.Millisecond},
	{name: "a bulk of 2 GiB", text: "*2\r\n$4\r\nECHO\r\n$2147483648\r\n" + strings.Repeat("b", 4_096), times: always, every: 200 * time.Millisecond},
	{name: "an array of 10^9", text: "*1000000000\r\n" + bulk("PING"), times: always, every: 200 * time.Millisecond},
	{name: "a line without end", text: strings.Repeat("l", 16_384), times: always, every: 200 * time.Millisecond},
	{name: "HTTP", text: "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", times: always, every: 200 * time.Millisecond},
}

// words returns a bulk string of n bytes.
func words(n int) string { return fmt.Sprintf("$%d\r\n%s\r\n", n, strings.Repeat("w", n)) }

// Clients that leave before their replies.
var leavingBehaviours = []behaviour{
	{name: "RL.RESET and close", text: repeated(64, "RL.RESET", "nobody"), every: 3 * time.Second, leaves: byClose},
	{name: "RL.RESET and half-close", text: repeated(64, "RL.RESET", "nobody"), every: time.Second, leaves: byHalf},
	{name: "RL.COMMIT and close", text: repeated(64, "RL.COMMIT", "h:nobody", "7"), every: 5 * time.Second, leaves: byClose},
	{name: "RL.PEEK and close", text: repeated(64, "RL.PEEK", "hostile", "op", "-"), every: 5 * time.Second, leaves: byClose},
	{name: "RL.RESERVE and close", text: repeated(64, "RL.RESERVE", "hostile", "op", "-", "1"), every: 5 * time.Second, leaves: byClose},
	{name: "connect and close", every: time.Second, leaves: byClose},
	{name: "half-close and wait", text: repeated(64, "RL.CHECK", "hostile", "op", "-"), every: time.Second, leaves: byHalf},
	{name: "half-close of half a command", text: "*3\r\n$8\r\nRL.CHE", every: time.Second, leaves: byHalf},
	{name: "half-close with unread replies", text: repeated(190, "COMMAND", "DOCS"), every: time.Second, leaves: byHalf},
	{name: "RST in the midst", text: repeated(64, "RL.CHECK", "hostile", "op", "-") + "*3\r\n$8\r\nRL.CHE", every: time.Second, leaves: byReset},
}

// Idle connections.
var idleBehaviours = []behaviour{
	{name: "silence", every: time.Second},
	{name: "silence after 1,000 checks", text: repeated(1_000, "RL.CHECK", "hostile", "op", "-"), every: 100 * time.Millisecond, reads: 1 << 20},
	{
		name: "silence in MULTI of 1,000", every: 100 * time.Millisecond, reads: 1 << 20,
		text: bulk("MULTI") + repeated(1_000, "RL.CHECK", "hostile", "op", "-"),
	},
}

// Clients of the admin listener.
var adminBehaviours = []behaviour{
	{name: "admin: idle keep-alive", text: "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", every: 200 * time.Millisecond, reads: 1 << 16, admin: true},
	{name: "admin: unread metrics", text: strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 20), every: time.Second, admin: true},
	{
		name: "admin: slow headers", piece: 1, every: 100 * time.Millisecond, admin: true,
		text: "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("s", 8_000),
	},
	{
		name: "admin: slow bodies", piece: 80, every: 100 * time.Millisecond, admin: true,
		text: "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 8000\r\n\r\n" + strings.Repeat("s", 7_999),
	},
}

// behaviourNamed returns the behaviour of a name.
func behaviourNamed(name string) (*behaviour, error) {
	for _, kind := range [][]behaviour{
		unreadBehaviours, malformedBehaviours, leavingBehaviours, idleBehaviours, adminBehaviours,
	} {
		for i := range kind {
			if kind[i].name == name {
				return &kind[i], nil
			}
		}
	}
	return nil, fmt.Errorf("find behaviour %q: there is none", name)
}
