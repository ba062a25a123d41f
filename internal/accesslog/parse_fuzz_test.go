package accesslog

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// maxReason is the bound in the documentation of Parse.
const maxReason = 400

func FuzzParse(f *testing.F) {
	sample, err := os.ReadFile("testdata/sample.log")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(sample)) {
		f.Add([]byte(line))
	}
	f.Add([]byte(benchmarkLine))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Parse(line)
		if err != nil {
			if e != (Entry{}) {
				t.Errorf("Parse returned %v and also the entry %+v", err, e)
			}
			checkPrintable(t, "the reason", err.Error(), maxReason)
			checkPrintable(t, "the excerpt", excerpt(string(line)), maxExcerpt)
			return
		}
		checkEntry(t, e, len(line))
	})
}

// checkEntry checks the invariants of an entry that Parse made of a line of that length.
func checkEntry(t *testing.T, e Entry, length int) {
	t.Helper()
	if !isToken(e.Method) || e.Target == "" || e.RemoteAddr == "" || e.Status < 0 || e.Status > 999 || e.Bytes < 0 {
		t.Errorf("Parse returned %+v, which Entry rules out", e)
	}
	fields := e.RemoteAddr + e.User + e.Method + e.Target + e.Proto + e.Referer + e.UserAgent
	if len(fields) > length {
		t.Errorf("the fields of a line of %d bytes have %d", length, len(fields))
	}
	if y := e.Time.Year(); y < 0 || y > 9999 {
		return // Only in UTC, where the line's form has no room for it.
	}
	line := formatEntry(e)
	again, err := Parse([]byte(line))
	if err != nil {
		t.Fatalf("Parse of the formatted entry %s: %v", line, err)
	}
	if again != e {
		t.Errorf("Parse(%s)\n got %+v\nwant %+v", line, again, e)
	}
}

// checkPrintable checks that s is printable text of at most limit bytes.
func checkPrintable(t *testing.T, what, s string, limit int) {
	t.Helper()
	if len(s) > limit {
		t.Errorf("%s has %d bytes, want at most %d: %s", what, len(s), limit, s)
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%s is not printable: %q", what, s)
	}
}

// formatEntry writes an entry as a line of Combined Log Format, or of Common if
// it has neither a referer nor a user agent.
func formatEntry(e Entry) string {
	request := e.Method + " " + escapeBytes(e.Target, ` "\`)
	if e.Proto != "" {
		request += " HTTP/" + escapeBytes(strings.TrimPrefix(e.Proto, "HTTP/"), ` "\`)
	}
	line := fmt.Sprintf(`%s - %s [%s] "%s" %03d %d`, e.RemoteAddr, orDash(escapeBytes(e.User, ` "\[-`)),
		e.Time.Format(stampLayout), request, e.Status, e.Bytes)
	if e.Referer != "" || e.UserAgent != "" {
		line += fmt.Sprintf(` "%s" "%s"`, formatHeader(e.Referer), formatHeader(e.UserAgent))
	}
	return line
}

func formatHeader(s string) string {
	if s == "-" {
		return `\x2d`
	}
	return orDash(escapeBytes(s, `"\`))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// escapeBytes escapes the bytes of special and all that are not printable
// ASCII, as nginx does.
func escapeBytes(s, special string) string {
	var b strings.Builder
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || strings.IndexByte(special, s[i]) >= 0 {
			fmt.Fprintf(&b, `\x%02X`, s[i])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
