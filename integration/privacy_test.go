package integration

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// captureRedis forwards connections to a Redis and captures the bytes that they send to it.
func captureRedis(t *testing.T, target string) (addr string, sent *syncbuffer.Buffer) {
	t.Helper()
	sent = new(syncbuffer.Buffer)
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
	p := serve(t, limits, "--redis", addr, "--pprof", "--log-level", "debug", "--log-denials")
	c := p.client()
	var replies bytes.Buffer
	away := false
	ask := func(words ...any) {
		reply := c.Do(t.Context(), words...)
		err := reply.Err()
		if notRefunded := away && words[0] == "RL.REFUND" && err != nil; err != nil && !notRefunded {
			t.Errorf("%v: %v", words, err)
		}
		fmt.Fprintln(&replies, reply.Val(), err)
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
		ask("RL.DENIED", "100")
		ask("CLIENT", "LIST")
		ask("INFO")
	}
	round()
	pages := p.get("/metrics") + p.get("/readyz") + p.get("/debug/pprof/goroutine?debug=2")
	node.Kill()
	away = true
	round()
	pages += p.get("/metrics") + p.get("/readyz")
	if !strings.Contains(sent.String(), "lg:t:{t}") || replies.Len() < 1000 {
		t.Fatalf("%d bytes were sent and %d replied", len(sent.String()), replies.Len())
	}
	for place, content := range map[string][]byte{"the bytes to Redis": []byte(sent.String()), "the replies": replies.Bytes(), "the log": []byte(p.output()), "a page": []byte(pages)} {
		for _, ip := range addrs {
			for _, form := range formsOf(ip) {
				if at := bytes.Index(content, form); at >= 0 {
					t.Errorf("%s have %s as %q: %q", place, ip, form, content[max(0, at-60):min(len(content), at+60)])
				}
			}
		}
	}
}

// TestAddressSecretRotates: proxies with the secret before, with both, and with the new one share
// a store, and limits by address go on without a reset.
func TestAddressSecretRotates(t *testing.T) {
	node := redistest.Start(t)
	limits := writeLimits(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: slots, by: [tenant, ip], algorithm: concurrency, slots: 2}
    - {id: window, by: [tenant, ip], rate: 10/month, algorithm: fixed_window, when: {op: w}}
shared:
  - {id: ip, by: [ip], rate: 10/h, burst: 10, when: {op: s}}
`)
	secret := func(text string) string {
		path := filepath.Join(t.TempDir(), "secret")
		writePassword(t, path, strings.Repeat(text, 32))
		return path
	}
	first, second := secret("1"), secret("2")
	start := func(flags ...string) *redis.Client {
		return serve(t, limits, append(append([]string{"--redis", node.Addr, "--instances", "1", "--deny-cache-size", "0", "--privacy-ip-max-ttl", "800h"}, exact...), flags...)...).client()
	}
	before := start("--privacy-ip-secret-file", first)
	between := start("--privacy-ip-secret-file", second, "--privacy-ip-secret-previous-file", first)
	after := start("--privacy-ip-secret-file", second)
	for _, op := range []string{"s", "w"} { // a limit of all tenants, and one in the tenant's hash slot
		ip := "192.0.2." + strconv.Itoa(len(op)+int(op[0]))
		for i, step := range []struct {
			by      *redis.Client
			cost    int
			allowed bool
			left    int64
		}{
			{before, 4, true, 6},
			{between, 3, true, 3},
			{before, 1, true, 2},
			{between, 3, false, 2},
			{between, 2, true, 0},
			{before, 1, false, 0},
			{between, 1, false, 0},
			{after, 1, true, 4},
		} {
			v, err := check(step.by, "t", op, ip, step.cost)
			if err != nil || v.allowed != step.allowed || v.left != step.left || v.source != "store" {
				t.Errorf("op %s, step %d: %+v, %v", op, i, v, err)
			}
		}
	}
	do := func(c *redis.Client, words ...any) []any {
		t.Helper()
		reply := c.Do(t.Context(), words...)
		if err := reply.Err(); err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		fields, _ := reply.Slice()
		return fields
	}
	// A reservation that is cancelled returns its units to both buckets.
	id := do(between, "RL.RESERVE", "t", "w", "192.0.2.200", 4)[7]
	if err := between.Do(t.Context(), "RL.CANCEL", id).Err(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]*redis.Client{"before": before, "after": after} {
		if v := do(c, "RL.PEEK", "t", "w", "192.0.2.200", 10); v[0] != int64(1) {
			t.Errorf("the proxy with the secret %s: %v", name, v)
		}
	}
	// Slots are those of both.
	const held = "192.0.2.201"
	do(before, "RL.ACQUIRE", "t", "-", held)
	slot := do(between, "RL.ACQUIRE", "t", "-", held)
	if refused := do(between, "RL.ACQUIRE", "t", "-", held); slot[0] != int64(1) || refused[0] != int64(0) {
		t.Errorf("slots: %v, %v", slot, refused)
	}
	if err := between.Do(t.Context(), "RL.RELEASE", slot[7]).Err(); err != nil {
		t.Error(err)
	}
	if free := do(before, "RL.ACQUIRE", "t", "-", held); free[0] != int64(1) {
		t.Errorf("behind a release: %v", free)
	}
	if _, errs, code := run(t, nil, "serve", "--listen", "127.0.0.1:0", "--admin", "", "--privacy-ip-secret-file", first, "--privacy-ip-secret-previous-file", first); code != 1 || !strings.Contains(errs, "are equal") {
		t.Errorf("equal secrets: exit %d: %s", code, errs)
	}
}
