package server

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestInlineWords has golden lines, each checked against redis-server 7.0.15.
func TestInlineWords(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{`PING`, []string{"PING"}},
		{`  ECHO   a  `, []string{"ECHO", "a"}},
		{"\tECHO\ta\vb\v \vc", []string{"ECHO", "a\vb\v", "c"}},
		{"ECHO a\rb", []string{"ECHO", "a", "b"}},
		{`ECHO ""`, []string{"ECHO", ""}},
		{`ECHO "a b" 'c d'`, []string{"ECHO", "a b", "c d"}},
		{`ECHO ab"c d"`, []string{"ECHO", "abc d"}},
		{`ECHO "a\x41\n\r\t\b\a\q\"\\"`, []string{"ECHO", "aA\n\r\t\b\aq\"\\"}},
		{`ECHO "\xzz\x4"`, []string{"ECHO", "xzzx4"}},
		{`ECHO 'a\'b\n'`, []string{"ECHO", `a'b\n`}},
		{`ECHO 'a\\'`, nil},
		{`ECHO a\x41\`, []string{"ECHO", `a\x41\`}},
		{"ECHO \"a\"\vb", []string{"ECHO", "a", "b"}},
		{`ECHO "a\"`, nil},
		{`ECHO 'a\'`, nil},
		{`ECHO "a"b`, nil},
		{`ECHO '`, nil},
		{`"\`, nil},
	}
	for _, test := range tests {
		line := []byte(test.line)
		spans, ok := splitWords(line, nil)
		var got []string
		for _, s := range spans {
			got = append(got, string(line[s.start:s.end]))
		}
		if ok != (test.want != nil) || ok && !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, %v; want %q", test.line, got, ok, test.want)
		}
	}
}

// TestBoundsAreInclusive checks each bound at its edge and one beyond.
func TestBoundsAreInclusive(t *testing.T) {
	lim := &parserBounds{args: 12, bulk: 100, request: 150, inline: 110}
	words := func(n int) string { return command(slices.Repeat([]string{"x"}, n)...) }
	bulk := func(n int) string { return command(strings.Repeat("x", n)) }
	two := func(n int) string { return command(strings.Repeat("x", 100), strings.Repeat("x", n)) }
	line := func(n int) string { return strings.Repeat("x ", n) + "\n" }
	tests := []struct {
		name            string
		fits, not       string
		want            error
		unauthenticated bool
	}{
		{"words", words(12), words(13), errCount, false},
		{"words without AUTH", words(10), words(11), errUnauthenticatedCount, true},
		{"bulk", bulk(100), bulk(101), errLength, false},
		{"request", two(150 - 4 - 108 - 7), two(150 - 4 - 108 - 6), errLength, false},
		{"line of a length", "*0\r\n", "*" + strings.Repeat("1", 110) + "\r\n", errCountLine, false},
		{"length of many digits", "*0\r\n", "*" + strings.Repeat("1", 109) + "\r\n", errCount, false},
		{
			"line", strings.Repeat("x", 90) + strings.Repeat(" ", 20) + "\n",
			strings.Repeat("x", 90) + strings.Repeat(" ", 21) + "\n", errInline, false,
		},
		{"words in a line", line(12), line(13), errInline, false},
		{"long word in a line", strings.Repeat("x", 100) + "\n", strings.Repeat("x", 101) + "\n", errInline, false},
	}
	for _, test := range tests {
		lim.unauthenticated = test.unauthenticated
		var f commandParser
		if done, err := f.advance([]byte(test.fits), lim); !done || err != nil || f.pos != len(test.fits) {
			t.Errorf("%s: %v, %v at %d of %d", test.name, done, err, f.pos, len(test.fits))
		}
		f.reset()
		if _, err := f.advance([]byte(test.not), lim); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

// TestDripIsLinear sends a long command byte by byte. A parser that started over for each
// byte would take 4,000 times as long, and the test would not end in time.
func TestDripIsLinear(t *testing.T) {
	lim := &parserBounds{args: 1 << 20, bulk: 1 << 20, request: 8 << 20, inline: 1 << 20}
	for _, text := range []string{
		command(slices.Repeat([]string{"x"}, 200_000)...),
		command(strings.Repeat("x", 1<<20)),
		strings.Repeat("x", 1<<20) + "\n",
	} {
		var f commandParser
		b := []byte(text)
		for i := range b {
			if done, err := f.advance(b[:i], lim); done || err != nil {
				t.Fatalf("%v, %v after %d bytes", done, err, i)
			}
		}
	}
}
