package config

import (
	"strings"
	"testing"
	"time"
)

// TestNotDuration checks the duration that an error names.
func TestNotDuration(t *testing.T) {
	for text, want := range map[string]string{
		"1d": "; write 24h", "42d": "; write for example 7s", "2w": "; write 336h", "1day": "; write 24h", "10 days": "; write 240h", "1.5d": "; write 36h",
		"1d12h": "; write 36h", "1d12": "; write 36h", "1h30": "; write 1h30m", "1m30": "; write 1m30s", "1h 30m": "; write 1h30m",
		"5 min": "; write 5m", "10sec": "; write 10s", "200msec": "; write 200ms",
		"5": "; write it with a unit, for example 7s", "": "for example 7s", "-1d": "for example 7s", "d": "for example 7s",
		"1s500": "no unit; write for example 7s", "1y": "a day is 24h; write for example 7s", "999999999w": "; write for example 7s", "5M": "; write for example 7s",
		"0d": "; write for example 7s",
	} {
		if got := NotDuration(text, "7s", 1000*time.Hour); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}

// TestNotWhole checks the number that an error names.
func TestNotWhole(t *testing.T) {
	for text, want := range map[string]string{
		"1k": "1000", "1.5k": "1500", "2M": "2000000", "10,000": "10000", "1_000_000": "1000000", "100/s": "100", "5k/s": "5000", "7.0": "7",
		"": "99", "x": "99", "1.5": "99", "1.000": "99", "12.000/s": "99", "1.000k": "1000", "1,5": "99", "1kk": "99", "-1k": "99", "0k": "99", "9M": "99", "1e3": "99",
	} {
		if got := NotWhole(text, "99", 1, 5_000_000); !strings.HasSuffix(got, "for example "+want) {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}

// TestExamplesOfSettings: each error of a number or a duration has an example that the setting takes, and
// that switches nothing off.
func TestExamplesOfSettings(t *testing.T) {
	for _, r := range newTable(new(Settings)) {
		err := r.read("\x00")
		if err == nil || !strings.Contains(err.Error(), "for example ") || r.value.arg != "N" && r.value.arg != "DURATION" {
			continue
		}
		_, example, _ := strings.Cut(err.Error(), "for example ")
		if d, err := time.ParseDuration(example); r.read(example) != nil || example == "0" || err == nil && d == 0 {
			t.Errorf("%s: the example is %q", r.name, example)
		}
	}
}
