package commands_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/denials"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestTop: requested and denied buckets are reported with their limit.
func TestTop(t *testing.T) {
	s := newSession(t, newHandler(t, handlerOptions{}))
	check := [][]byte{[]byte("RL.CHECK"), []byte("acme"), []byte("POST /pay"), []byte("-")}
	for range 5000 {
		s.Serve(context.Background(), [][][]byte{check}, nil)
	}
	got, _, _ := s.Serve(context.Background(), [][][]byte{{[]byte("RL.TOP"), []byte("1")}}, nil)
	for _, want := range []string{
		"*10\r\n$3\r\nhot\r\n*1\r\n*6\r\n$6\r\nbucket\r\n", "$6\r\ndenied\r\n*1\r\n*6\r\n$6\r\nbucket\r\n$35\r\nlg:t:{acme}:payments;s;op=POST /pay\r\n$8\r\nlimit_id\r\n$8\r\npayments\r\n$10\r\nper_second\r\n$",
	} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("RL.TOP answers %q, want %q in it", got, want)
		}
	}
	if !bytes.HasSuffix(got, []byte("$8\r\nat_least\r\n:0\r\n")) {
		t.Errorf("RL.TOP answers %q, and one bucket is counted exactly", got)
	}
	if zero := []byte("$21\r\nwould_deny_per_second\r\n$1\r\n0\r\n"); !bytes.Contains(got, zero) {
		t.Errorf("RL.TOP answers %q, want %q in it", got, zero)
	}
}

// TestDenied: the last denials have all their fields, as pairs in RESP2 and as maps in RESP3.
func TestDenied(t *testing.T) {
	asked := 0
	h := commands.NewHandler(commands.Options{
		Limiter: limiter.New(limiter.Options{Store: memory.New(memory.Options{})}, &limit.Set{}),
		Denials: func(n int) []denials.Denial {
			asked = n
			return []denials.Denial{{
				At: time.UnixMilli(7), Tenant: "acme", Operation: "POST /pay", Address: "h", Limit: "payments", Plan: "free", Mode: "shadow",
				Source: "store", Cost: 2, Capacity: 10, Remaining: 1, RetryAfter: -1, Trial: true, Key: "user9",
			}}
		},
	})
	ask := asking(t, h)
	const fields = "$5\r\nat_ms\r\n:7\r\n$6\r\ntenant\r\n$4\r\nacme\r\n$2\r\nop\r\n$9\r\nPOST /pay\r\n$7\r\naddress\r\n$1\r\nh\r\n$8\r\nlimit_id\r\n$8\r\npayments\r\n" +
		"$4\r\nplan\r\n$4\r\nfree\r\n$4\r\nmode\r\n$6\r\nshadow\r\n$6\r\nsource\r\n$5\r\nstore\r\n$4\r\ncost\r\n:2\r\n$8\r\ncapacity\r\n:10\r\n$9\r\nremaining\r\n:1\r\n$14\r\nretry_after_ms\r\n:-1\r\n$5\r\ntrial\r\n:1\r\n$3\r\nkey\r\n$5\r\nuser9\r\n"
	if got, want := ask("RL.DENIED"), "*1\r\n*28\r\n"+fields; got != want || asked != 10 {
		t.Errorf("got %q of %d, want %q", got, asked, want)
	}
	ask("HELLO", "3")
	if got, want := ask("RL.DENIED", "100"), "*1\r\n%14\r\n"+fields; got != want || asked != 100 {
		t.Errorf("got %q of %d, want %q", got, asked, want)
	}
	if got := ask("RL.DENIED", "101"); got != "-ERR n must be an integer between 1 and 100, the number of rows\r\n" {
		t.Errorf("got %q", got)
	}
}

// TestTopRates: the rate of one check is less than one a second, a text in RESP2 and a double in RESP3.
func TestTopRates(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	ask := asking(t, newHandler(t, handlerOptions{now: func() time.Time { return now }}))
	ask("RL.CHECK", "acme", "GET /", "-")
	now = now.Add(8 * time.Second)
	const row = "$2\r\nop\r\n$5\r\nGET /\r\n$10\r\nper_second\r\n"
	if got := ask("RL.TOP"); !strings.Contains(got, row+"$4\r\n0.13\r\n") {
		t.Errorf("RESP2: %q", got)
	}
	ask("HELLO", "3")
	if got := ask("RL.TOP"); !strings.Contains(got, row+",0.13\r\n") {
		t.Errorf("RESP3: %q", got)
	}
}
