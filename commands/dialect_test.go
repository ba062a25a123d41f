package commands_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// dialectStart is the time at which the tests of dialects start.
var dialectStart = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// dialect is a session with a clock set by the test.
type dialect struct {
	t   *testing.T
	now time.Time
	s   *commands.Session
}

func newDialect(t *testing.T) *dialect {
	d := &dialect{t: t, now: dialectStart}
	clock := func() time.Time { return d.now }
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/s"})
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second, Now: clock, RetryJitter: time.Minute}, set)
	h := commands.NewHandler(commands.Options{Limiter: l, Limits: &fixedLimits{}, Now: clock})
	d.s = h.NewSession(commands.Peer{ID: 1})
	t.Cleanup(d.s.Close)
	return d
}

// at sends a line some milliseconds after the start, and returns the reply: the numbers
// of an array, or the line of an error.
func (d *dialect) at(ms int64, line string) string {
	d.now = dialectStart.Add(time.Duration(ms) * time.Millisecond)
	reply, _, _ := d.s.Serve(context.Background(), words(line), nil)
	text := strings.ReplaceAll(strings.TrimSuffix(string(reply), "\r\n"), "\r\n", " ")
	text = strings.TrimPrefix(text, "*5 ")
	return strings.ReplaceAll(text, ":", "")
}

// TestCellTable is the table of redis-cell's own test (src/cell/mod.rs, it_rate_limits,
// version 0.5.0), in whole seconds as in the replies of its command: a bucket of 5 that
// refills by one a second.
func TestCellTable(t *testing.T) {
	d := newDialect(t)
	for i, row := range []struct {
		ms, quantity                     int64
		limited, remaining, retry, reset int64
	}{
		{0, 6, 1, 5, -1, 0},
		{0, 1, 0, 4, -1, 1},
		{0, 1, 0, 3, -1, 2},
		{0, 1, 0, 2, -1, 3},
		{0, 1, 0, 1, -1, 4},
		{0, 1, 0, 0, -1, 5},
		{0, 1, 1, 0, 1, 5},
		{3000, 1, 0, 2, -1, 3},
		{3100, 1, 0, 1, -1, 4}, // 3.9 s
		{4000, 1, 0, 1, -1, 4},
		{8000, 1, 0, 4, -1, 1},
		{9500, 1, 0, 4, -1, 1},
		{9500, 0, 0, 4, -1, 1},
		{9500, 2, 0, 2, -1, 3},
		{9500, 5, 1, 2, 3, 3},
	} {
		want := fmt.Sprint(row.limited, 5, row.remaining, row.retry, row.reset)
		if got := d.at(row.ms, fmt.Sprint("CL.THROTTLE k 4 1 1 ", row.quantity)); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
}

// TestDialectsGolden runs one script in each dialect: a burst of 5, 10 in 60 s.
func TestDialectsGolden(t *testing.T) {
	const outOfRange = "-ERR TOKENS is out of range"
	for _, lang := range []struct{ name, command string }{
		{"cell", "CL.THROTTLE k 5 10 60 %d"}, {"gcra", "GCRA k 5 10 60 TOKENS %d"}, {"throttle", "THROTTLE k 5 10 60 %d"},
	} {
		d := newDialect(t)
		for i, row := range []struct {
			ms, quantity int64
			want         map[string]string
		}{
			{0, 1, map[string]string{"cell": "0 6 5 -1 6", "gcra": "0 6 5 -1 6", "throttle": "1 5 4 24 0"}},
			{0, 1, map[string]string{"cell": "0 6 4 -1 12", "gcra": "0 6 4 -1 12", "throttle": "1 5 3 30 0"}},
			{0, 3, map[string]string{"cell": "0 6 1 -1 30", "gcra": "0 6 1 -1 30", "throttle": "1 5 0 48 0"}},
			{0, 1, map[string]string{"cell": "0 6 0 -1 36", "gcra": "0 6 0 -1 36", "throttle": "0 5 0 48 6"}},
			{0, 1, map[string]string{"cell": "1 6 0 6 36", "gcra": "1 6 0 6 36", "throttle": "0 5 0 48 6"}},
			{0, 0, map[string]string{"cell": "0 6 0 -1 36", "gcra": outOfRange, "throttle": "1 5 0 48 0"}},
			{2500, 1, map[string]string{"cell": "1 6 0 4 34", "gcra": "1 6 0 4 34", "throttle": "0 5 0 45 3"}},
			{6500, 1, map[string]string{"cell": "0 6 0 -1 36", "gcra": "0 6 0 -1 36", "throttle": "1 5 0 47 0"}},
			{6500, 7, map[string]string{"cell": "1 6 0 -1 36", "gcra": "1 6 0 -1 36", "throttle": "0 5 0 47 41"}},
			{30_000, 0, map[string]string{"cell": "0 6 4 -1 12", "gcra": outOfRange, "throttle": "1 5 4 24 0"}},
			{60_000, 1, map[string]string{"cell": "0 6 5 -1 6", "gcra": "0 6 5 -1 6", "throttle": "1 5 4 24 0"}},
		} {
			if got := d.at(row.ms, fmt.Sprintf(lang.command, row.quantity)); got != row.want[lang.name] {
				t.Errorf("%s, row %d: %s, want %s", lang.name, i, got, row.want[lang.name])
			}
		}
	}
}

// TestDialectErrors: each dialect rejects the same as its own server, with its texts, behind which there is what would be right.
func TestDialectErrors(t *testing.T) {
	const cellUsage = "-Cell error Usage cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	const gcraUsage = "-ERR wrong number of arguments for 'gcra' command GCRA key max_burst tokens_per_period period [TOKENS count]"
	for line, want := range map[string]string{
		"CL.THROTTLE k 1 1":            cellUsage,
		"CL.THROTTLE k 1 1 1 1 1":      cellUsage,
		"CL.THROTTLE k x 1 1":          "-Cell error Couldn't parse as integer x",
		"CL.THROTTLE k 1 0 1":          "-Cell error Zero rates are not supported",
		"CL.THROTTLE k 1 2000000000 1": "-Cell error Zero rates are not supported",
		"CL.THROTTLE k 1 1 1 -1":       "-Cell error Negative numbers are not supported",
		"CL.THROTTLE k -1 1 1":         "-Cell error Negative numbers are not supported",
		"GCRA k 1 1":                   gcraUsage,
		"GCRA k 1 1 1 TOKENS 1 1":      gcraUsage,
		"GCRA k -1 1 1":                "-ERR max_burst is out of range",
		"GCRA k x 1 1":                 "-ERR max_burst is out of range",
		"GCRA k 1 0 1":                 "-ERR tokens_per_period is out of range",
		"GCRA k 1 x 1":                 "-ERR tokens_per_period is not an integer or out of range",
		"GCRA k 1 1 0":                 "-ERR period must be > 0 and < 1e12",
		"GCRA k 1 1 1e12":              "-ERR period must be > 0 and < 1e12",
		"GCRA k 1 1 x":                 "-ERR value is not a valid float",
		"GCRA k 1 1 1 TOKENS":          "-ERR Missing TOKENS value",
		"GCRA k 1 1 1 TOKENS 0":        "-ERR TOKENS is out of range",
		"GCRA k 1 1 1 TOKENS x":        "-ERR TOKENS is not an integer or out of range",
		"GCRA k 1 1 1 NUM 1":           "-ERR syntax error write TOKENS in front of the number of units",
		"THROTTLE k 1 1":               "-ERR wrong number of arguments for 'throttle' command THROTTLE key max_burst count_per_period period [quantity]",
		"THROTTLE k 0 1 1":             "-ERR invalid max_burst it is a whole number from 1 to 9223372036854775807",
		"THROTTLE k 1 x 1":             "-ERR invalid count_per_period it is a whole number from 1 to 9223372036854775807",
		"THROTTLE k 1 1 0":             "-ERR invalid period it is a whole number from 1 to 9223372036854775807",
		"THROTTLE k 1 1 1 -1":          "-ERR invalid quantity it is a whole number from 0 to 9223372036854775807",
	} {
		if got := newDialect(t).at(0, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	overflow := newDialect(t).at(0, "GCRA k 9223372036854775807 1 1000000000")
	if !strings.HasPrefix(overflow, "-ERR GCRA limiting uses microsecond accuracy.") {
		t.Errorf("an overflow: %s", overflow)
	}
}

// TestDialectDefects: known defects of the originals do not occur here.
func TestDialectDefects(t *testing.T) {
	d := newDialect(t)
	// Rates above 1000/s are exact, and remaining is never more than the limit.
	for i := range 6001 {
		reset := 1
		if i == 6000 {
			reset = 2 // the last of 6001 takes a little more than a second to come back
		}
		if got, want := d.at(0, "CL.THROTTLE fast 6000 6000 1"), fmt.Sprint("0 6001 ", 6000-i, " -1 ", reset); got != want {
			t.Fatalf("check %d: %s, want %s", i, got, want)
		}
	}
	if got := d.at(1, "CL.THROTTLE fast 6000 6000 1 7"); got[0] != '1' {
		t.Errorf("after 1 ms, in which 6 units come, 7 are granted: %s", got)
	}
	if got := d.at(1, "CL.THROTTLE fast 6000 6000 1 6"); got[0] != '0' {
		t.Errorf("after 1 ms, in which 6 units come, 6 are not granted: %s", got)
	}
	// Raising a rate never denies.
	d = newDialect(t)
	d.at(0, "CL.THROTTLE k 1 1 3600")
	if got := d.at(0, "CL.THROTTLE k 100 100 1"); got[0] != '0' {
		t.Errorf("a raised rate denies: %s", got)
	}
	// Any bytes are a key, and different ones are different buckets.
	for _, key := range []string{"a", "{a}", "%7Ba%7D", "\xff\x00 x", strings.Repeat("k", 1024)} {
		reply, _, _ := d.s.Serve(context.Background(), [][][]byte{{[]byte("cl.throttle"), []byte(key), []byte("0"), []byte("1"), []byte("60")}}, nil)
		if !bytes.HasPrefix(reply, []byte("*5\r\n:0\r\n")) {
			t.Errorf("key %q: %q", key, reply)
		}
	}
	if got := d.at(0, "CL.THROTTLE "+strings.Repeat("k", 1025)+" 0 1 60"); got[0] != '-' {
		t.Errorf("a key of 1,025 bytes: %s", got)
	}
}
