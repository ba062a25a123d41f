package integration

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// capture is what went through a connection.
type capture struct {
	mu    sync.Mutex // guards bytes
	bytes []byte
}

func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes = append(c.bytes, b...)
	return len(b), nil
}

func (c *capture) content() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.bytes)
}

// captureRedis forwards connections to a Redis and captures what they send to it.
func captureRedis(t *testing.T, target string) (addr string, sent *capture) {
	t.Helper()
	sent = &capture{}
	return redistest.Listen(t, func(client net.Conn) {
		server, err := net.Dial("tcp", target)
		if err != nil {
			return // the Redis was killed
		}
		defer func() { _ = server.Close() }()
		go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
		_, _ = io.Copy(io.MultiWriter(server, sent), client)
	}), sent
}

// formsOf returns the forms in which an address could appear.
func formsOf(text string) (forms [][]byte) {
	a := netip.MustParseAddr(text).Unmap()
	raw := a.AsSlice()
	for _, form := range []string{a.String(), a.StringExpanded(), hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), fmt.Sprint(raw)} {
		forms = append(forms, []byte(form))
	}
	if a.Is4() {
		n := uint64(raw[0])<<24 | uint64(raw[1])<<16 | uint64(raw[2])<<8 | uint64(raw[3])
		forms = append(forms, strconv.AppendUint(nil, n, 10))
	} else {
		forms = append(forms, raw[:8]) // the network, which identifies a client
		p, _ := a.Prefix(64)
		forms = append(forms, []byte(strings.TrimSuffix(p.Addr().String(), "::")))
	}
	return append(forms, raw)
}

// TestAddressesStayInside: no byte that leaves the process contains the address of a client, in
// any form: nothing that goes to Redis, no log line, no page and no reply.
func TestAddressesStayInside(t *testing.T) {
	node := redistest.Start(t)
	addr, sent := captureRedis(t, node.Addr)
	limits := writeLimits(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: tenant, by: [tenant], rate: 1000/s}
    - {id: who, by: [tenant, "user|ip"], rate: 5/s}
    - {id: slots, by: [tenant, ip], algorithm: concurrency, slots: 2}
    - {id: dark, by: [tenant, op, ip], rate: 1/s, mode: shadow}
shared:
  - {id: ip, by: [ip], rate: 5/s}
  - {id: window, by: [ip], rate: 50/m, algorithm: sliding_window, group: w}
  - {id: log, by: [ip], rate: 20/h, algorithm: sliding_log, group: l}
  - {id: ban, action: deny, when: {ip: 198.51.100.0/24}}
`)
	p := serve(t, limits, "--redis", addr, "--pprof", "--log-level", "debug")
	c := p.client()
	var replies bytes.Buffer
	ask := func(words ...any) {
		reply := c.Do(t.Context(), words...)
		if err := reply.Err(); err != nil {
			t.Errorf("%v: %v", words, err)
		}
		fmt.Fprintln(&replies, reply.Val())
	}
	addrs := []string{"203.0.113.77", "::ffff:203.0.113.78", "2001:db8:1234:5678::42", "2001:DB8:0:ABCD:0:0:0:1", "198.51.100.9"}
	round := func() {
		for _, ip := range addrs {
			for range 8 {
				ask("RL.CHECK", "t", "GET /x", ip)
			}
			ask("RL.CHECK", "t", "-", ip, "1", "ID", "i-"+strconv.Itoa(len(ip)), "HEADERS")
			ask("RL.PEEK", "t", "-", ip)
			ask("RL.EXPLAIN", "t", "GET /x", ip)
			ask("RL.RESERVE", "u", "-", ip, "3")
			ask("RL.ACQUIRE", "v", "-", ip)
			ask("RL.REFUND", "t", "-", ip, "1")
		}
		ask("RL.TOP", "100")
		ask("CLIENT", "LIST")
		ask("INFO")
	}
	round()
	pages := p.get("/metrics") + p.get("/readyz") + p.get("/debug/pprof/goroutine?debug=2")
	node.Kill()
	round()
	pages += p.get("/metrics") + p.get("/readyz")
	if !bytes.Contains(sent.content(), []byte("lg:t:{t}")) || replies.Len() < 1000 {
		t.Fatalf("%d bytes were sent and %d replied", len(sent.content()), replies.Len())
	}
	for place, content := range map[string][]byte{"the bytes to Redis": sent.content(), "the replies": replies.Bytes(), "the log": []byte(p.output()), "a page": []byte(pages)} {
		for _, ip := range addrs {
			for _, form := range formsOf(ip) {
				if at := bytes.Index(content, form); at >= 0 {
					t.Errorf("%s have %s as %q: %q", place, ip, form, content[max(0, at-60):min(len(content), at+60)])
				}
			}
		}
	}
}
