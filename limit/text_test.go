package limit_test

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestDidYouMean: a suggestion is found for a word in small letters and for one in capitals.
func TestDidYouMean(t *testing.T) {
	for word, want := range map[string]string{
		"tennant": "; did you mean tenant?", "TENANT": "; did you mean tenant?", "APIKEY": "; did you mean APIKEYS?",
		"tenant": "", "cost": "", "": "",
	} {
		if got := limit.DidYouMean(word, []string{"tenant", "APIKEYS"}); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// TestShorten: text for a message is bounded, printable and UTF-8.
func TestShorten(t *testing.T) {
	long := strings.Repeat("a", 63)
	for text, want := range map[string]string{
		"": "", "plain": "plain", "a\tb\x7f\u0085c": "a?b??c", "\xff\xfea": "?a", long + "a": long + "a", long + "aa": long + "a...", long + "ä": long + "?...",
	} {
		if got := limit.Shorten(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := limit.Quote(long + "ä\n"); got != `"`+long+`..."` {
		t.Errorf("quoted: %s", got)
	}
}
