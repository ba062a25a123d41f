package bucket

import "testing"

// TestParseRateWords checks the error for a period that is written out.
func TestParseRateWords(t *testing.T) {
	for text, want := range map[string]string{
		"100/minute": "minute is written m: 100/m",
		"3/week":     "week is written 7d: 3/7d",
	} {
		if _, err := ParseRate(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
