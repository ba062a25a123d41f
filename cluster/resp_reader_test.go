package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// TestReplyInPieces: a reply of every length is read from pieces of any size,
// also where it does not fit into the buffer at first.
func TestReplyInPieces(t *testing.T) {
	for _, n := range []int{0, 1, 1000, replyBuffer - 20, replyBuffer, maxReplyBulk} {
		word := bytes.Repeat([]byte("x"), n)
		b := appendBulk(appendArray(nil, 1), word)
		in := repliesOf(append(b, ":7\r\n"...), uint64(n))
		if size, err := in.array(); size != 1 || err != nil {
			t.Fatalf("%d, %v", size, err)
		}
		var text replyError
		if _, err := in.integer(); !errors.As(err, &text) || string(text) != string(word) {
			t.Fatalf("a text of %d bytes: %v", n, err)
		}
		if v, err := in.integer(); v != 7 || err != nil {
			t.Errorf("behind %d bytes: %d, %v", n, v, err)
		}
	}
}

// TestReplyTooLarge: what announces more than a reply can have is given up
// there, and not when the rest has been read or the memory is gone.
func TestReplyTooLarge(t *testing.T) {
	words := func(in *respReader) error {
		_, err := in.strings()
		return err
	}
	array := func(in *respReader) error {
		_, err := in.array()
		return err
	}
	integer := func(in *respReader) error {
		_, err := in.integer()
		return err
	}
	const rest = 1 << 20
	for name, tc := range map[string]struct {
		read func(*respReader) error
		text string
		more string
	}{
		"deep arrays":   {words, "", "*1\r\n"},
		"wide arrays":   {words, "*4000\r\n*4000\r\n", ":1\r\n"},
		"a wide array":  {words, "*4097\r\n", "*0\r\n"},
		"a large word":  {words, "$4097\r\n", "x"},
		"a long array":  {array, "*1048577\r\n", ":1\r\n"},
		"a long text":   {integer, "$2097153\r\n", "x"},
		"a longer text": {integer, "$999999999999999999\r\n", "x"},
		"a long line":   {integer, ":", "1"},
		"a long error":  {array, "-", "x"},
	} {
		in := repliesOf([]byte(tc.text+strings.Repeat(tc.more, rest)), 1)
		if err := tc.read(in); !errors.Is(err, errReply) {
			t.Errorf("%s: %v", name, err)
		}
		if read := len(tc.text) + rest*len(tc.more) - len(in.conn.(*bytesConn).rest); read > 2*maxReplyBulk {
			t.Errorf("%s: %d bytes were read", name, read)
		}
		if len(in.buf) > 2*maxReplyBulk {
			t.Errorf("%s: a buffer of %d bytes", name, len(in.buf))
		}
	}
}

// flightOf is a flight of one call about one bucket.
func flightOf(t *testing.T, s spec) (*batch, *nodeRequest) {
	t.Helper()
	var b limit.Buffer
	compile(t, s).Resolve(&limit.Request{Tenant: "t", Cost: 1}, nil, 0, &b)
	tk := new(nodeRequest)
	tk.reset(opTake, route{}, b.Items, time.Now().Add(time.Hour))
	tk.calls, tk.open = b.Calls, 1
	fl := newBatch()
	fl.opts = batchOptions{acrossSlots: true}
	fl.addRequest(tk, time.Now())
	fl.encode("sha")
	return fl, tk
}

// TestReplyOfAnotherLength: a reply with more or fewer numbers than were asked
// for is none: what follows it would be taken for the reply to something else.
func TestReplyOfAnotherLength(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: false, 2: true, 3: false, 1000: false} {
		fl, tk := flightOf(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1/d", Burst: "10"})
		b := fmt.Appendf(appendArray(nil, n), ":%d\r\n", time.Now().UnixMicro())
		b = append(b, strings.Repeat(":1\r\n", max(1, n-1))...)
		err := fl.readReply(&fl.commands[0], repliesOf(b, 1), func(error, []limit.Item) { t.Error("told of a reply") })
		if want && (err != nil || tk.items[0].Source != limit.SourceStore) || !want && !errors.Is(err, errReply) {
			t.Errorf("%d numbers for a time and a level: %v", n, err)
		}
	}
}

// TestImpossibleNumbers: a bucket that no script replies is no decision, even
// where its numbers are well formed; what is replied behind it still counts.
func TestImpossibleNumbers(t *testing.T) {
	const now, day = 1_700_000_000_000_000, 86_400_000_000
	start := int64(now - now%day)
	for _, tc := range []struct {
		algorithm, burst string
		now              int64
		numbers          []int64
		possible         bool
	}{
		{"token_bucket", "10", now, []int64{5 * day}, true},
		{"token_bucket", "10", now, []int64{10 * day}, true},
		{"token_bucket", "10", now, []int64{-3 * day}, true}, // a debt
		{"token_bucket", "10", now, []int64{11 * day}, false},
		{"token_bucket", "10", now, []int64{-999_999_999_999_999_999}, false},
		{"token_bucket", "10", -1, []int64{5 * day}, false},
		{"token_bucket", "10", 999_999_999_999_999_999, []int64{5 * day}, false},
		{"sliding_window", "", now, []int64{start, start + day, 1, 2, 0, 0}, true},
		{"sliding_window", "", now, []int64{start, start + day, -1, 2, 0, 0}, false},
		{"sliding_window", "", now, []int64{start, start + day, 1, -2, 0, 0}, false},
		{"sliding_window", "", now, []int64{start, start + day, 1, 2, 0, 999_999_999_999_999_999}, false},
		{"sliding_window", "", now, []int64{start, start, 1, 2, 0, 0}, false},
		{"fixed_window", "", now, []int64{now + 1, now + day, 1, 0, 0, 0}, false},
		{"fixed_window", "", now, []int64{now - day, now, 1, 0, 0, 0}, false},
		{"fixed_window", "", now, []int64{start, start + day, 1, 0, 1, start + 1}, true},
	} {
		fl, tk := flightOf(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1/d", Algorithm: tc.algorithm, Burst: tc.burst})
		reply := fmt.Appendf(appendArray(nil, 1+len(tc.numbers)), ":%d\r\n", tc.now)
		for _, n := range tc.numbers {
			reply = fmt.Appendf(reply, ":%d\r\n", n)
		}
		var told error
		err := fl.readReply(&fl.commands[0], repliesOf(reply, 1), func(err error, _ []limit.Item) { told = err })
		decided := tk.items[0].Source == limit.SourceStore
		if err != nil || decided != tc.possible || kindOf(told).ofBucket() == tc.possible {
			t.Errorf("%s at %d: %v: %v, decided %v, told %v", tc.algorithm, tc.now, tc.numbers, err, decided, told)
		}
	}
}
