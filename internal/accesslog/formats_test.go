package accesslog

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// cloudFront has the heading of a standard log, and a line.
const cloudFront = "#Version: 1.0\n" +
	"#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs-protocol-version\n" +
	"2026-03-01\t10:00:05\tLHR3-C2\t1045\t203.0.113.7\tGET\td111.cloudfront.net\t/v1/search\t200\t-\tcurl/8.5%20(x)\tq=a%20b\tHTTP/2.0\n"

// ofIIS has the heading of a log of IIS, and a line.
const ofIIS = "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n" +
	"#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs-version cs(User-Agent) cs(Referer) sc-status sc-bytes\n" +
	"2026-03-01 10:00:05 10.0.0.1 GET /v1/search q=a%20b 443 ann 203.0.113.7 HTTP/2.0 curl/8.5+(x) - 200 1045\n"

// formats are a line of each format, all of the same request.
var formats = map[string]string{
	"combined":   `203.0.113.7 - - [01/Mar/2026:10:00:05 +0000] "GET /v1/search?q=a%20b HTTP/2.0" 200 1045 "-" "curl/8.5 (x)"`,
	"envoy":      `[2026-03-01T10:00:05.000Z] "GET /v1/search?q=a%20b HTTP/2.0" 200 - 0 1045 12 11 "198.51.100.9, 203.0.113.7" "curl/8.5 (x)" "id" "example.com" "10.0.0.1:80"`,
	"ALB":        `https 2026-03-01T10:00:05.000000Z app/shop/50dc6c495c0c9188 203.0.113.7:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 1045 "GET https://example.com:443/v1/search?q=a%20b HTTP/2.0" "curl/8.5 (x)" ECDHE TLSv1.2 arn:aws "Root=1" "example.com" "arn" 1 2026-03-01T10:00:04.999000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`,
	"CloudFront": cloudFront,
	"IIS":        ofIIS,
	"nginx JSON": `{"time_iso8601":"2026-03-01T10:00:05+00:00","remote_addr":"203.0.113.7","request":"GET /v1/search?q=a%20b HTTP/2.0","status":"200","body_bytes_sent":"1045","http_user_agent":"curl/8.5 (x)","http_referer":"-"}`,
	"Caddy":      `{"level":"info","ts":1772359205.0,"request":{"remote_ip":"203.0.113.7","client_ip":"203.0.113.7","proto":"HTTP/2.0","method":"GET","host":"example.com","uri":"/v1/search?q=a%20b"},"size":1045,"status":200,"user_agent":"curl/8.5 (x)"}`,
	"Traefik":    `{"ClientHost":"203.0.113.7","DownstreamContentSize":1045,"DownstreamStatus":200,"RequestMethod":"GET","RequestPath":"/v1/search?q=a%20b","RequestProtocol":"HTTP/2.0","StartUTC":"2026-03-01T10:00:05Z","request_User-Agent":"curl/8.5 (x)"}`,
	"Envoy JSON": `{"start_time":"2026-03-01T10:00:05.000Z","method":"GET","path":"/v1/search?q=a%20b","protocol":"HTTP/2.0","response_code":200,"bytes_sent":1045,"downstream_remote_address":"203.0.113.7:5555","user_agent":"curl/8.5 (x)"}`,
	"Unix ms":    `{"time":1772359205000,"client_ip":"203.0.113.7","method":"GET","url":"/v1/search?q=a%20b","proto":"HTTP/2.0","status_code":200,"bytes_sent":1045,"agent":"curl/8.5 (x)"}`,
}

// TestKeptLine: a line with its fields beside, as Fluent Bit writes them, is read by these.
func TestKeptLine(t *testing.T) {
	e, err := parseJSON([]byte(`{"log":"GET /a","stream":"stdout","time":"2026-03-01T10:00:05Z","client_ip":"203.0.113.7","method":"GET","path":"/a","status":200}`))
	if err != nil || e.RemoteAddr != "203.0.113.7" || e.Target != "/a" {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestFormats checks that a request is the same in every format.
func TestFormats(t *testing.T) {
	want := Entry{
		Time: time.Date(2026, 3, 1, 10, 0, 5, 0, time.UTC), RemoteAddr: "203.0.113.7", Method: "GET", Target: "/v1/search?q=a%20b",
		Proto: "HTTP/2.0", UserAgent: "curl/8.5 (x)", Status: 200, Bytes: 1045,
	}
	for name, log := range formats {
		r, err := NewReader(strings.NewReader(log))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Next()
		got.Line = 0
		expected := want
		switch name {
		case "ALB": // which logs the URL
			expected.Target = "https://example.com:443" + want.Target
		case "IIS":
			expected.User, expected.Target, expected.UserAgent = "ann", "/v1/search?q=a b", "curl/8.5+(x)"
		case "CloudFront": // whose values are decoded
			expected.Target = "/v1/search?q=a b"
		}
		if err != nil || got != expected {
			t.Errorf("%s: %v, got\n%+v, want\n%+v", name, err, got, expected)
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s goes on: %v", name, err)
		}
	}
}

// TestFormatsMistakes checks the errors of lines that begin like a format.
func TestFormatsMistakes(t *testing.T) {
	for line, want := range map[string]string{
		`{"time":"2026-03-01T10:00:05Z"`:                                                                  "the line begins like JSON and is not",
		`{"log":"203.0.113.7 - - [x","stream":"stdout","time":"2026-03-01T10:00:05Z"}`:                    "inside of one of Docker: jq -r .log FILE takes it out",
		`web-1  | 203.0.113.7 - acme [16/Nov/2026:00:00:03 +0000] "GET /a HTTP/1.1" 200 12 "-" "app/2.1"`: `the address of the client stands behind "web-1 |": remove what is in front of it (docker compose logs --no-log-prefix, or cut)`,
		`{}`: "the object has no time",
		`{"time":"noon","client_ip":"192.0.2.1","method":"GET","path":"/"}`:        "the time is \"noon\"",
		`{"time":-5,"client_ip":"192.0.2.1","method":"GET","path":"/"}`:            "want seconds or milliseconds",
		`{"time":1e400,"client_ip":"192.0.2.1","method":"GET","path":"/"}`:         "the time is",
		`{"time":1,"client_ip":"192.0.2.1","method":"GET"}`:                        "no target: want one of request_uri, uri,",
		`{"time":1,"method":"GET","path":"/"}`:                                     "no address of a client",
		`{"time":1,"client_ip":"192.0.2.1","method":"GET","path":"/","status":20}`: "the status is \"20\"",
		`[2026-03-01T10:00:05Z] "GET / HTTP/1.1"`:                                  "fewer fields behind the request",
		`[2026-03-01T10:00:05Z "GET / HTTP/1.1" 200`:                               "is not closed by a bracket",
		`[2026-99-01T10:00:05Z] "GET / HTTP/1.1" 200 - 0 0 1 1 "-" "-"`:            "the time is",
		`[{"time":1,"client_ip":"192.0.2.1","method":"GET","path":"/"}]`:           "a JSON array begins, and its objects are not read: want one object a line",
		"[\n{\"time\":1}": "a JSON array begins",
		"2026-11-16 00:00:01 INFO GET handler /x took 3 ms":                                               "there is no time in brackets after HOST IDENT USER",
		"2026-11-16 00:00:01 INFO GET of order 7 took 3 ms":                                               "there is no time in brackets after HOST IDENT USER",
		"2026-11-16 00:00:01 10.0.0.1 GET /x - 443 - 1.2.3.4 curl 200 0 0 5":                              "these are columns of IIS, and no line #Fields: before them names them: want the log from its line #Fields: on",
		"2026-03-01\t10:00:05\tLHR3-C2\t1045\t203.0.113.7\tGET":                                           "no line #Fields: before them names them: want the log with its first two lines, of which #Fields: is one",
		`[::1] - - [01/Mar/2026:10:00:05 +0000] "GET" 200 1`:                                              "the request has no target",
		`http 2026-03-01T10:00:05Z elb 192.0.2.1:1 - 0 0 0 200 200 1 "GET http://h/ HTTP/1.1"`:            "there are 11 fields before the request",
		"#Fields: date time c-ip\n2026-03-01":                                                             "there is 1 column between spaces: want the 3",
		"#Fields: date time c-ip\n2026-03-01\t10:00:05":                                                   "there are 2 columns between tabs: want the 3",
		"#Fields: date time c-ip cs-method cs-uri-stem sc-status\n2026-03-01\t10:00:05\t-\tGET\t/\t200":   "c-ip, cs-method or cs-uri-stem is empty",
		"#Fields: date time c-ip cs-method cs-uri-stem sc-status\n2026-03-01\t10:00:05\t::1\tGET\t/\tok":  "the status is \"ok\"",
		"#Fields: date time c-ip cs-method cs-uri-stem sc-status\n2026-03-01\t25:00:05\t::1\tGET\t/\t200": "the time is",
	} {
		r, err := NewReader(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.Next(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// FuzzReader checks that no log makes reading fail otherwise than by an error, and that entries
// have what replays use.
func FuzzReader(f *testing.F) {
	for _, log := range formats {
		f.Add([]byte(log))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := NewReader(strings.NewReader(string(log)))
		if err != nil {
			return
		}
		for {
			e, err := r.Next()
			var bad *ParseError
			switch {
			case errors.As(err, &bad):
				if len(bad.Reason) > 600 || strings.ContainsFunc(bad.Error(), func(c rune) bool { return c < ' ' }) {
					t.Fatalf("the error is %d bytes or has control characters: %q", len(bad.Reason), bad)
				}
			case err != nil:
				return
			case !isToken(e.Method) || e.Target == "" || e.RemoteAddr == "" || e.Time.Location() != time.UTC || e.Bytes < 0 || e.Status < 0 || e.Status > 999:
				t.Fatalf("%+v", e)
			}
		}
	})
}

// TestLineOfAnotherFormat: a line that begins in no known way is said to be none of the format that the lines before it have.
func TestLineOfAnotherFormat(t *testing.T) {
	for of, want := range map[string]string{
		"combined":   "want Common or Combined Log Format",
		"ALB":        "it is no line of an Application Load Balancer, as those before it are",
		"envoy":      "it is no line of Envoy's default format, as those before it are",
		"nginx JSON": "it is no line of JSON, as those before it are",
	} {
		r, err := NewReader(strings.NewReader(formats[of] + "\ngarbage\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); err != nil {
			t.Errorf("%s: %v", of, err)
		}
		if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", of, err, want)
		}
	}
}
