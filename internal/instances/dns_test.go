package instances

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// answer is the answer of a name server to questions of one type.
type answer struct {
	code      dnsmessage.RCode
	addrs     []string
	srv       []string // targets
	truncated bool     // over UDP nothing of it fits
	noTCP     bool     // and over TCP the connection ends
}

// nameServer is a name server on UDP and TCP.
type nameServer struct {
	packets net.PacketConn
	streams net.Listener
	wg      sync.WaitGroup

	mu      sync.Mutex
	answers map[dnsmessage.Type]answer
	asked   map[string]int // by network
}

func startNameServer(t *testing.T) *nameServer {
	t.Helper()
	s := &nameServer{asked: map[string]int{}}
	var err error
	if s.streams, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if s.packets, err = net.ListenPacket("udp", s.streams.Addr().String()); err != nil {
		t.Fatal(err)
	}
	s.wg.Go(s.servePackets)
	s.wg.Go(s.serveStreams)
	t.Cleanup(func() {
		s.packets.Close()
		s.streams.Close()
		s.wg.Wait()
	})
	return s
}

// say sets the answers from now on.
func (s *nameServer) say(answers map[dnsmessage.Type]answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.asked = answers, map[string]int{}
}

// resolver returns a resolver that queries this server only, and otherwise equals the one
// that proxies use.
func (s *nameServer) resolver() *net.Resolver {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, s.streams.Addr().String())
	}
	return &net.Resolver{PreferGo: resolver.PreferGo, StrictErrors: resolver.StrictErrors, Dial: dial}
}

func (s *nameServer) servePackets() {
	buf := make([]byte, 4<<10)
	for {
		n, from, err := s.packets.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := s.reply(buf[:n], "udp"); reply != nil {
			_, _ = s.packets.WriteTo(reply, from)
		}
	}
}

func (s *nameServer) serveStreams() {
	for {
		conn, err := s.streams.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			var size [2]byte
			if _, err := io.ReadFull(conn, size[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(conn, query); err != nil {
				return
			}
			if reply := s.reply(query, "tcp"); reply != nil {
				_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
			}
		})
	}
}

// reply returns the answer to a query, nil for none.
func (s *nameServer) reply(query []byte, network string) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	s.mu.Lock()
	a := s.answers[q.Type]
	s.asked[network]++
	s.mu.Unlock()
	out := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RCode: a.code},
		Questions: m.Questions,
	}
	switch {
	case a.truncated && network == "udp":
		out.Truncated = true
	case a.noTCP && network == "tcp":
		return nil
	default:
		out.Answers = a.records(q)
	}
	packed, err := out.Pack()
	if err != nil {
		panic(err)
	}
	return packed
}

func (a answer) records(q dnsmessage.Question) []dnsmessage.Resource {
	var all []dnsmessage.Resource
	add := func(body dnsmessage.ResourceBody) {
		all = append(all, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 5}, Body: body})
	}
	for _, text := range a.addrs {
		addr := netip.MustParseAddr(text)
		if q.Type == dnsmessage.TypeA {
			add(&dnsmessage.AResource{A: addr.As4()})
		} else {
			add(&dnsmessage.AAAAResource{AAAA: addr.As16()})
		}
	}
	for i, target := range a.srv {
		add(&dnsmessage.SRVResource{Port: uint16(6380 + i), Target: dnsmessage.MustNewName(target)})
	}
	return all
}

// many returns n different addresses.
func many(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	return all
}

const (
	typeA    = dnsmessage.TypeA
	typeAAAA = dnsmessage.TypeAAAA
	typeSRV  = dnsmessage.TypeSRV
)

// TestDNS checks that different addresses count, and records. A truncated or empty answer
// is an error.
func TestDNS(t *testing.T) {
	type answers = map[dnsmessage.Type]answer
	three := answer{addrs: []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}}
	failed, unknown := answer{code: dnsmessage.RCodeServerFailure}, answer{code: dnsmessage.RCodeNameError}
	s := startNameServer(t)
	for name, row := range map[string]struct {
		answers answers
		source  Source
		want    int
		wantErr string
	}{
		"A":                   {answers{typeA: three}, DNS("gates.test."), 3, ""},
		"AAAA":                {answers{typeAAAA: {addrs: []string{"fd00::1", "fd00::2"}}}, DNS("gates.test."), 2, ""},
		"both":                {answers{typeA: three, typeAAAA: {addrs: []string{"fd00::1"}}}, DNS("gates.test."), 4, ""},
		"twice the same":      {answers{typeA: {addrs: []string{"10.0.0.1", "10.0.0.1"}}, typeAAAA: {addrs: []string{"::ffff:10.0.0.1"}}}, DNS("gates.test."), 1, ""},
		"truncated":           {answers{typeA: {addrs: many(1000), truncated: true}}, DNS("gates.test."), 1000, ""},
		"truncated, no TCP":   {answers{typeA: {addrs: many(1000), truncated: true, noTCP: true}}, DNS("gates.test."), 0, "look up addresses: "},
		"SERVFAIL":            {answers{typeA: failed, typeAAAA: failed}, DNS("gates.test."), 0, "server misbehaving"},
		"SERVFAIL for AAAA":   {answers{typeA: three, typeAAAA: failed}, DNS("gates.test."), 0, "server misbehaving"},
		"NXDOMAIN":            {answers{typeA: unknown, typeAAAA: unknown}, DNS("gates.test."), 0, "no such host"},
		"empty":               {answers{}, DNS("gates.test."), 0, "no such host"},
		"SRV":                 {answers{typeSRV: {srv: []string{"a.test.", "b.test.", "b.test."}}}, SRV("_resp._tcp.gates.test."), 3, ""},
		"SRV, SERVFAIL":       {answers{typeSRV: failed}, SRV("_resp._tcp.gates.test."), 0, "server misbehaving"},
		"SRV, NXDOMAIN":       {answers{typeSRV: unknown}, SRV("_resp._tcp.gates.test."), 0, "no such host"},
		"SRV, empty":          {answers{typeA: three}, SRV("_resp._tcp.gates.test."), 0, "no such host"},
		"SRV, a bad target":   {answers{typeSRV: {srv: []string{"a.test.", "b b.test."}}}, SRV("_resp._tcp.gates.test."), 0, "invalid"},
		"SRV, truncated":      {answers{typeSRV: {srv: []string{"a.test.", "b.test."}, truncated: true}}, SRV("_resp._tcp.gates.test."), 2, ""},
		"SRV, the name alone": {answers{typeSRV: {srv: []string{"a.test."}}}, SRV("gates.test."), 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.say(row.answers)
			d := row.source.(dns)
			d.resolver = s.resolver()
			got, err := d.ask(t.Context())
			if got != row.want || (err == nil) != (row.wantErr == "") || err != nil && !strings.Contains(err.Error(), row.wantErr) {
				t.Errorf("got %d, %v, want %d, %s", got, err, row.want, row.wantErr)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if truncated := strings.Contains(name, "truncated"); s.asked["udp"] == 0 || (s.asked["tcp"] > 0) != truncated {
				t.Errorf("it was asked %v", s.asked)
			}
		})
	}
}

// TestDNSKeepsTheLast checks that a count by DNS follows the name, and stays while the
// lookup fails.
func TestDNSKeepsTheLast(t *testing.T) {
	s := startNameServer(t)
	c := New(Options{Ceiling: 3})
	d := dns{s.resolver(), "gates.test.", countAddrs}
	for i, row := range []struct {
		a    answer
		want int
	}{
		{answer{addrs: many(5)}, 5},
		{answer{code: dnsmessage.RCodeServerFailure}, 5},
		{answer{code: dnsmessage.RCodeNameError}, 5},
		{answer{}, 5},
		{answer{addrs: many(2)}, 2},
		{answer{addrs: many(7)}, 7},
	} {
		s.say(map[dnsmessage.Type]answer{typeA: row.a})
		c.logChange(d.ask(t.Context()))
		if c.Healthy() != row.want || (c.Status().Err != nil) != (len(row.a.addrs) == 0) {
			t.Errorf("step %d: %+v, want %d", i, c.Status(), row.want)
		}
	}
}

// TestDNSSource checks that a source looks up the name at once, and ends with its
// context.
func TestDNSSource(t *testing.T) {
	s := startNameServer(t)
	s.say(map[dnsmessage.Type]answer{typeA: {addrs: many(4)}})
	c := New(Options{Source: dns{s.resolver(), "gates.test.", countAddrs}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-c.first
	if c.Healthy() != 4 {
		t.Errorf("%+v, want 4", c.Status())
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
