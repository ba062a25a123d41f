package commands_test

import (
	"context"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/commands"
)

// clusterSession returns a session whose connection came in on local.
func clusterSession(t *testing.T, announce string, local net.Addr) *commands.Session {
	t.Helper()
	h := commands.NewHandler(commands.Options{Announce: announce})
	s := h.NewSession(commands.Peer{ID: 1, Local: local})
	t.Cleanup(s.Close)
	return s
}

func serve(s *commands.Session, line string) string {
	reply, _, _ := s.Serve(context.Background(), words(line), nil)
	return string(reply)
}

// TestClusterAddress: a cluster client receives the address on which its connection came
// in, unless another one is announced, from all commands that report it.
func TestClusterAddress(t *testing.T) {
	tests := []struct {
		name, announce string
		local          net.Addr
		host, port     string
	}{
		{"local", "", &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 6380}, "10.1.2.3", "6380"},
		{"IPv6", "", &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 7}, "2001:db8::1", "7"},
		{"announced", "limitgate.example:16380", &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 6380}, "limitgate.example", "16380"},
		{"unknown", "", nil, "", "0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := clusterSession(t, test.announce, test.local)
			id := strings.Split(serve(s, "CLUSTER MYID"), "\r\n")[1]
			if !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(id) {
				t.Fatalf("the node's id is %q", id)
			}
			bulk := func(text string) string { return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n" }
			want := "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n" + bulk(test.host) + ":" + test.port + "\r\n" + bulk(id) + "*0\r\n"
			if got := serve(s, "CLUSTER SLOTS"); got != want {
				t.Errorf("SLOTS:\n%q, want\n%q", got, want)
			}
			want = bulk(id + " " + test.host + ":" + test.port + "@0 myself,master - 0 0 0 connected 0-16383\n")
			if got := serve(s, "CLUSTER NODES"); got != want {
				t.Errorf("NODES:\n%q, want\n%q", got, want)
			}
			got := serve(s, "CLUSTER SHARDS")
			for _, pair := range []string{bulk("id") + bulk(id), bulk("port") + ":" + test.port + "\r\n", bulk("ip") + bulk(test.host), bulk("endpoint") + bulk(test.host)} {
				if !strings.Contains(got, pair) {
					t.Errorf("SHARDS has no %q: %q", pair, got)
				}
			}
			if got := serve(s, "CLUSTER REPLICAS "+id); got != "*0\r\n" {
				t.Errorf("REPLICAS of this node: %q", got)
			}
		})
	}
}
