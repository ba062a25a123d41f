package accesslog

import (
	"strings"
	"testing"
)

func TestExcerptIsShortAndPrintable(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{"GET /é \"x\" \\", "GET /é \"x\" \\"},
		{"a\tb\x1b[2J\x7f", `a\x09b\x1b[2J\x7f`},
		{"\xff\xc3", `\xff\xc3`},
		{"\u202e\u0085\U000e0001", `\u202e\u0085\U000e0001`},
		{"\uFFFD", "\uFFFD"},
		{strings.Repeat("x", 80), strings.Repeat("x", 80)},
		{strings.Repeat("x", 81), strings.Repeat("x", 77) + "…"},
		{strings.Repeat("x", 79) + "é", strings.Repeat("x", 77) + "…"},
		{strings.Repeat("é", 40), strings.Repeat("é", 40)},
		{strings.Repeat("é", 41), strings.Repeat("é", 38) + "…"},
		{strings.Repeat("x", 76) + "\x00yy", strings.Repeat("x", 76) + "…"},
	}
	for _, tt := range tests {
		got := excerpt(tt.in)
		if got != tt.want {
			t.Errorf("excerpt(%q) = %q, want %q", tt.in, got, tt.want)
		}
		checkPrintable(t, "the excerpt", got, maxExcerpt)
	}
}

func TestParseErrorNamesLineReasonAndText(t *testing.T) {
	err := &ParseError{Line: 7, Text: `a\x00`, Reason: "the line is wrong: want a right one"}
	const want = `parse line 7: the line is wrong: want a right one; the line begins: a\x00`
	if err.Error() != want {
		t.Errorf("Error() = %s, want %s", err, want)
	}
}
