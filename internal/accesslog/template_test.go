package accesslog

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// expand parses the template and expands it for e.
func expand(t *testing.T, template string, e Entry) string {
	t.Helper()
	parsed, err := ParseTemplate(template)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Expand(&e)
}

func TestExpandKnowsAllFields(t *testing.T) {
	e := Entry{
		RemoteAddr: "2001:db8::1", User: "joe", Method: "GET", Target: "/a/b/c.png?page=2&q=x", Proto: "HTTP/1.1",
		Status: 404, Referer: "http://Example.com:80/x", UserAgent: "curl/7.38.0",
	}
	tests := []struct{ template, want string }{
		{DefaultOp, "GET /a/b/c.png"},
		{"{method}", "GET"},
		{"{path}", "/a/b/c.png"},
		{"{path:1}", "/a"},
		{"{path:64}", "/a/b/c.png"},
		{"{route}", "/a/b/c.png"},
		{"{route:2}", "/a/b"},
		{"{query:page}", "2"},
		{"{query:none}", "-"},
		{"{status}", "404"},
		{"{user}@{host}", "joe@2001:db8::1"},
		{"{referer_host}", "example.com"},
		{"{ua_family}", "curl"},
		{"text", "text"},
		{"{{{method}}}", "{GET}"},
		{"a}}b{{c", "a}b{c"},
		{"{{method}}", "{method}"},
		{"{query:a{b}", "-"},
	}
	for _, tt := range tests {
		if got := expand(t, tt.template, e); got != tt.want {
			t.Errorf("%s expands to %q, want %q", tt.template, got, tt.want)
		}
	}
}

// TestExpandRoute: numbers in a path become {id}, and a file with a digit at the top is no method of gRPC.
func TestExpandRoute(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/users/7?x=1": "/v1/users/{id}", "//v1//users/7/": "/v1/users/{id}", "/static/app.8.js": "/static/{id}", "/": "/", "*": "*",
		"/acme.v1.Users/Get": "/acme.v1.Users/Get", "/v1.2/users": "/v1.2/users", "/users/7": "/users/{id}",
		"http://a.example/orders/3b1f9c": "/orders/{id}", "/api/v2/orders/12/items/3": "/api/v2/orders/{id}/items/{id}", "": "/",
	} {
		if got := expand(t, "{route}", Entry{Target: target}); got != want {
			t.Errorf("%s expands to %q, want %q", target, got, want)
		}
	}
}

func TestExpandOfAnEntryWithoutAnything(t *testing.T) {
	for template, want := range map[string]string{
		"{method}": "-", "{path}": "/", "{path:1}": "/", "{query:a}": "-", "{status}": "0", "{user}": "-",
		"{host}": "-", "{referer_host}": "-", "{ua_family}": "-", "{user}{host}": "-", "{user}/{host}": "/",
	} {
		if got := expand(t, template, Entry{}); got != want {
			t.Errorf("%s expands to %q, want %q", template, got, want)
		}
	}
}

func TestExpandMakesValidNames(t *testing.T) {
	tests := []struct{ name, target, want string }{
		{"control characters", "/a\x00\n\x1b[2J\x7f", "/a???[2J?"},
		{"C1 control characters", "/a\u0085\u009b", "/a??"},
		{"not UTF-8", "/\xff\xc3(\xe2\x82", "/??(??"},
		{"a surrogate", "/\xed\xa0\x80", "/???"},
		{"a replacement character", "/\uFFFD", "/\uFFFD"},
		{"other scripts", "/é/日本", "/é/日本"},
		{"just fits", "/" + strings.Repeat("x", 1023), "/" + strings.Repeat("x", 1023)},
		{"too long", "/" + strings.Repeat("x", 5000), "/" + strings.Repeat("x", 1023)},
		{"cut before a character", "/" + strings.Repeat("x", 1022) + "éx", "/" + strings.Repeat("x", 1022)},
		{"cut after a character", "/" + strings.Repeat("x", 1021) + "éx", "/" + strings.Repeat("x", 1021) + "é"},
	}
	for _, tt := range tests {
		if got := expand(t, "{path}", Entry{Target: tt.target}); got != tt.want {
			t.Errorf("%s: %q expands to %q, want %q", tt.name, tt.target, got, tt.want)
		}
	}
}

func TestExpandAddsNothingAfterTheCut(t *testing.T) {
	// The character that did not fit is wider than the next one.
	got := expand(t, "{path}{method}", Entry{Target: "/" + strings.Repeat("x", 1022) + "é", Method: "G"})
	if strings.HasSuffix(got, "G") || len(got) != 1023 {
		t.Errorf("the word has %d bytes and ends with %q, want it to end at byte 1,023 where it was cut", len(got), got[len(got)-3:])
	}
}

func TestParseTemplateErrorsSayWhatIsWrong(t *testing.T) {
	tests := []struct{ template, want string }{
		{"", "it is empty"},
		{"{method", `a "{" is not closed`},
		{"a{", `a "{" is not closed`},
		{"}", `a "}" closes nothing`},
		{"{method}}", `a "}" closes nothing`},
		{"{qurey:key}", "{qurey:key} is no field: did you mean {query:key}?"},
		{"{uri}", "{uri} is no field: "},
		{"{}", "{} is no field: want one of {method}, {path[:N]}, {route[:N]}, {query:NAME}, {status}"},
		{"{Method}", "{Method} is no field"},
		{"{ip}", "{ip} is no field"},
		{"{\x1b[2J}", `{\x1b[2J} is no field`},
		{"{path:}", "want a number from 1 to 64"},
		{"{path:0}", "want a number from 1 to 64"},
		{"{path:65}", "want a number from 1 to 64"},
		{"{path:-1}", "want a number from 1 to 64"},
		{"{path:+1}", "want a number from 1 to 64"},
		{"{path:x}", "want a number from 1 to 64"},
		{"{path:99999999999999999999}", "want a number from 1 to 64"},
		{"{method:2}", "{method:2} takes no argument: want {method}"},
		{"{status:}", "{status:} takes no argument"},
		{"{query}", "{query} lacks its argument"},
		{"{query:}", "{query:} lacks its argument"},
	}
	for _, tt := range tests {
		_, err := ParseTemplate(tt.template)
		if err == nil {
			t.Errorf("ParseTemplate(%q) succeeds, want an error with %q", tt.template, tt.want)
		} else if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "parse template ") {
			t.Errorf("ParseTemplate(%q): %v, want an error with %q", tt.template, err, tt.want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, template := range []string{DefaultOp, "{path}", "{path:3}{{x}}", "{query:a}", "{host} {user}", "{referer_host}", "{ua_family} {status}", "{", "{path:99}", "\xff"} {
		f.Add(template, "/a//b?a=%41#x", "http://u@[2001:db8::1]:80/x")
	}
	f.Add("{path:2}", "http://host/a/b", "Mozilla/5.0 (compatible; Googlebot/2.1)")
	f.Fuzz(func(t *testing.T, template, target, header string) {
		parsed, err := ParseTemplate(template)
		if err != nil {
			checkPrintable(t, "the error", err.Error(), 400)
			return
		}
		e := Entry{Method: "GET", Target: target, RemoteAddr: header, User: header, Referer: header, UserAgent: header, Status: 200}
		got := parsed.Expand(&e)
		if got == "" || len(got) > maxWord || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q expands to %q, which is no valid name", template, got)
		}
		if again := parsed.Expand(&e); again != got {
			t.Errorf("%q expands to %q and then to %q", template, got, again)
		}
		checkSegments(t, target)
	})
}

// checkSegments checks that {path:N} keeps at most N segments.
func checkSegments(t *testing.T, target string) {
	t.Helper()
	path := firstSegments(pathOf(target), 2)
	if path == "/" {
		return
	}
	if n := len(strings.Split(strings.TrimPrefix(path, "/"), "/")); n > 2 || strings.Contains(path, "//") || strings.HasSuffix(path, "/") {
		t.Errorf("two segments of %q are %q", target, path)
	}
	if again := firstSegments(path, 2); again != path {
		t.Errorf("two segments of %q are %q, and of that %q", target, path, again)
	}
}

func BenchmarkExpand(b *testing.B) {
	op, err := ParseTemplate(DefaultOp)
	if err != nil {
		b.Fatal(err)
	}
	e, err := Parse([]byte(benchmarkLine))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		op.Expand(&e)
	}
}
