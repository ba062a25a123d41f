package accesslog

import (
	"strings"
	"testing"
	"time"
)

// atNoon is a time all lines of these tests may share.
var atNoon = time.Date(2015, time.May, 17, 12, 0, 0, 0, time.UTC)

const commonPrefix = `192.0.2.1 - - [17/May/2015:12:00:00 +0000] `

func TestParseAcceptsBothFormats(t *testing.T) {
	get := Entry{Time: atNoon, RemoteAddr: "192.0.2.1", Method: "GET", Target: "/a", Proto: "HTTP/1.1", Status: 200, Bytes: 5}
	tests := []struct {
		name, line string
		change     func(e *Entry)
	}{
		{"common", commonPrefix + `"GET /a HTTP/1.1" 200 5`, func(*Entry) {}},
		{"combined", commonPrefix + `"GET /a HTTP/1.1" 200 5 "http://x/" "y/1"`, func(e *Entry) { e.Referer, e.UserAgent = "http://x/", "y/1" }},
		{"dashes", commonPrefix + `"GET /a HTTP/1.1" 200 - "-" "-"`, func(e *Entry) { e.Bytes = 0 }},
		{"a dash that is escaped", commonPrefix + `"GET /a HTTP/1.1" 200 5 "\x2d" ""`, func(e *Entry) { e.Referer = "-" }},
		{"line ending", commonPrefix + "\"GET /a HTTP/1.1\" 200 5 \r\n", func(*Entry) {}},
		{"fields after the user agent", commonPrefix + `"GET /a HTTP/1.1" 200 5 "-" "y" "z" 0.1`, func(e *Entry) { e.UserAgent = "y" }},
		{"IPv6", strings.Replace(commonPrefix, "192.0.2.1", "2001:db8::1", 1) + `"GET /a HTTP/1.1" 200 5`, func(e *Entry) { e.RemoteAddr = "2001:db8::1" }},
		{"user", strings.Replace(commonPrefix, "- -", "- joe", 1) + `"GET /a HTTP/1.1" 200 5`, func(e *Entry) { e.User = "joe" }},
		{"user with a space and an escape", strings.Replace(commonPrefix, "- -", `- joe \x5bx`, 1) + `"GET /a HTTP/1.1" 200 5`, func(e *Entry) { e.User = "joe [x" }},
		{"user with a backslash at the end", strings.Replace(commonPrefix, "- -", `- joe\`, 1) + `"GET /a HTTP/1.1" 200 5`, func(e *Entry) { e.User = `joe\` }},
		{"user with an empty name", strings.Replace(commonPrefix, "- -", `- ""`, 1) + `"GET /a HTTP/1.1" 200 5`, func(*Entry) {}},
		{"target with spaces", commonPrefix + `"GET /a  b c HTTP/1.1" 200 5`, func(e *Entry) { e.Target = "/a  b c" }},
		{"target with HTTP/ inside", commonPrefix + `"GET /a HTTP/1.1 HTTP/1.0" 200 5`, func(e *Entry) { e.Target, e.Proto = "/a HTTP/1.1", "HTTP/1.0" }},
		{"no protocol", commonPrefix + `"GET /a" 200 5`, func(e *Entry) { e.Proto = "" }},
		{"escaped quotes", commonPrefix + `"GET /\"a\" HTTP/1.1" 200 5 "\\" "\"\""`, func(e *Entry) { e.Target, e.Referer, e.UserAgent = `/"a"`, `\`, `""` }},
		{"all escapes", commonPrefix + `"GET /\b\f\n\r\t\v\x7F\xe4 HTTP/1.1" 200 5`, func(e *Entry) { e.Target = "/\b\f\n\r\t\v\x7f\xe4" }},
		{"backslashes that escape nothing", commonPrefix + `"GET /\q\x4\xg0 HTTP/1.1" 200 5`, func(e *Entry) { e.Target = `/\q\x4\xg0` }},
		{"status of a client that went away", commonPrefix + `"GET /a HTTP/1.1" 000 5`, func(e *Entry) { e.Status = 0 }},
		{"many bytes", commonPrefix + `"GET /a HTTP/1.1" 200 9223372036854775807`, func(e *Entry) { e.Bytes = 1<<63 - 1 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := get
			tt.change(&want)
			got, err := Parse([]byte(tt.line))
			if err != nil {
				t.Fatalf("Parse(%s): %v", tt.line, err)
			}
			if got != want {
				t.Errorf("Parse(%s)\n got %+v\nwant %+v", tt.line, got, want)
			}
		})
	}
}

func TestParseErrorsSayWhatIsWrong(t *testing.T) {
	tests := []struct{ line, want string }{
		{"", "the line is empty"},
		{" \r\n", "the line is empty"},
		{"word", "begin with a host"},
		{" - - x", "begin with a host"},
		{"h - [17/May/2015:12:00:00 +0000] \"GET / HTTP/1.1\" 200 1", "fewer than three fields"},
		{"h [17/May/2015:12:00:00 +0000] \"GET / HTTP/1.1\" 200 1", "fewer than three fields"},
		{"2026/11/27 16:00:00 [error] 12#12: *1 limiting requests, excess: 5.1 by zone \"ip\", client: 192.0.2.1", "error log"},
		{"[Fri Nov 27 16:00:00.123456 2026] [core:error] [pid 12] AH00126: Invalid URI", "error log"},
		{"this is not a log line", "no time in brackets"},
		{"www.example.com:80 " + commonPrefix + `"GET / HTTP/1.1" 200 1`, "virtual host"},
		{"h - - [17/May/2015:12:00:00 +0000", "not closed"},
		{commonPrefix, "not closed"}, // The trailing blank is trimmed.
		{commonPrefix + "GET", "the request begins with \"GET\": want it in double quotes"},
		{commonPrefix + `"GET / HTTP/1.1`, "the request has no closing quote"},
		{commonPrefix + `"GET /\" 200 1`, "the request has no closing quote"},
		{commonPrefix + `"-" 400 0 "-" "-"`, `the request is "-": the client closed`},
		{commonPrefix + `"" 400 0 "-" "-"`, `the request is "": the client closed`},
		{commonPrefix + `"\x16\x03\x01 x" 400 0`, `begins with "\x16\x03\x01": want a method`},
		{commonPrefix + `"GET" 400 0`, "the request has no target"},
		{commonPrefix + `"GET HTTP/1.1" 400 0`, "the request has no target"},
		{commonPrefix + `"GET  HTTP/1.1" 400 0`, "the request has no target"},
		{commonPrefix + `"GET / HTTP/1.1"`, "ends after the request"},
		{commonPrefix + `"GET /"x" HTTP/1.1" 200 1`, "followed by \"x\" HTTP/1.1\" 200 1\""},
		{commonPrefix + `"GET / HTTP/1.1" - 1`, `the status is "-"`},
		{commonPrefix + `"GET / HTTP/1.1" 20x 1`, `the status is "20x"`},
		{commonPrefix + `"GET / HTTP/1.1" 2000 1`, `the status is "2000"`},
		{commonPrefix + `"GET / HTTP/1.1" 200`, `the number of bytes is ""`},
		{commonPrefix + `"GET / HTTP/1.1" 200 -5`, `the number of bytes is "-5"`},
		{commonPrefix + `"GET / HTTP/1.1" 200 9223372036854775808`, "want at most 9223372036854775807"},
		{commonPrefix + `"GET / HTTP/1.1" 200 5 6`, `the referer begins with "6"`},
		{commonPrefix + `"GET / HTTP/1.1" 200 5 "-"`, "not followed by a space and a user agent"},
		{commonPrefix + `"GET / HTTP/1.1" 200 5 "-"x"y"`, "not followed by a space and a user agent"},
		{commonPrefix + `"GET / HTTP/1.1" 200 5 "-" "y`, "the user agent has no closing quote"},
		{commonPrefix + `"GET / HTTP/1.1" 200 5 "-" "y"z"`, `the user agent is followed by "z""`},
	}
	for _, tt := range tests {
		e, err := Parse([]byte(tt.line))
		if err == nil {
			t.Errorf("Parse(%s) = %+v, want an error with %q", tt.line, e, tt.want)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Parse(%s): %v, want an error with %q", tt.line, err, tt.want)
		}
	}
}

func TestParseCopiesTheLine(t *testing.T) {
	line := []byte(commonPrefix + `"GET /a HTTP/1.1" 200 5 "-" "agent"`)
	e, err := Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	clear(line)
	if e.Target != "/a" || e.UserAgent != "agent" {
		t.Errorf("after the line was overwritten the entry is %+v", e)
	}
}

func TestParseAllocatesOnce(t *testing.T) {
	line := []byte(benchmarkLine)
	n := testing.AllocsPerRun(100, func() {
		if _, err := Parse(line); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1 {
		t.Errorf("Parse of a line without escapes allocates %v times, want at most 1", n)
	}
}

const benchmarkLine = `192.0.2.10 - - [17/May/2015:10:05:03 +0000] "GET /presentations/logstash-monitorama-2013/images/kibana-search.png HTTP/1.1" 200 203023 "http://www.example.com/presentations/logstash-monitorama-2013/" "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/32.0.1700.77 Safari/537.36"`

func BenchmarkParse(b *testing.B) {
	line := []byte(benchmarkLine)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}
