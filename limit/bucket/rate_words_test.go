package bucket

import "testing"

// TestParseRateWords checks the error for a rate that is written as elsewhere.
func TestParseRateWords(t *testing.T) {
	for text, want := range map[string]string{
		"100/minute": "minute is written m: 100/m",
		"3/week":     "week is written 7d: 3/7d",

		"100 per second":          "a rate is COUNT/PERIOD: write 100/s",
		"100 requests/hour":       "a rate is COUNT/PERIOD: write 100/h",
		"100rps":                  "a rate is COUNT/PERIOD: write 100/s",
		"100 / 15 min":            "a rate is COUNT/PERIOD: write 100/15m",
		"0.5/s":                   "a rate is COUNT/PERIOD, of whole numbers: write 1/2s",
		"2.25/10s":                "a rate is COUNT/PERIOD, of whole numbers: write 9/40s",
		"1.5k/s":                  "a rate is COUNT/PERIOD, of whole numbers: write 1500/s",
		"10/M":                    "the unit M is a minute or a month: write 10/m for each minute, or 10/month for each month of the calendar",
		"10/15M":                  "the unit M is a minute or a month: write 10/15m for each minute, or 10/month for each month of the calendar",
		"10K/m":                   "a rate is COUNT/PERIOD, of whole numbers: write 10000/m",
		"1,000/s":                 "a rate is COUNT/PERIOD, of whole numbers: write 1000/s",
		"1_000_000/month":         "a rate is COUNT/PERIOD, of whole numbers: write 1000000/month",
		"5/100ms":                 "a rate is COUNT/PERIOD: write 50/s",
		"5/w":                     "a rate is COUNT/PERIOD: write 5/7d",
		"5/2weeks":                "a rate is COUNT/PERIOD: write 5/14d",
		"5/2month":                "day and month are those of the calendar, one at a time: write a number of s, m, h or d for other periods",
		"100/30":                  "PERIOD has a unit: write 100/30s for seconds, or m, h or d in the place of s",
		"100/":                    errRateForm.Error(),
		"5":                       "a rate is COUNT/PERIOD, and PERIOD is missing: for example 5/s, 5/15m or 5/h",
		"1,5/s":                   errRateForm.Error(),
		"100/s burst 200":         "the burst is a field of its own: write rate: 100/s, burst: 200",
		"20 slots":                "slots are no rate: write algorithm: concurrency, slots: 20",
		"1000/month Europe/Paris": "the time zone is a field of its own: write rate: 1000/month, timezone: NAME",
		"x burst 200":             errRateForm.Error(),
		"1/0.5s":                  "a rate is COUNT/PERIOD, of whole numbers: write 2/s",
		"3/1.5m":                  "a rate is COUNT/PERIOD, of whole numbers: write 2/m",
		"7/.75h":                  "a rate is COUNT/PERIOD: write 28/3h",
		"1/0.0s":                  errRateForm.Error(),
		"1/0.5d":                  errRateForm.Error(),
		"-5/s":                    "COUNT is above zero: write 5/s, or to refuse everything action: deny instead of a rate",
		"5/0s":                    "PERIOD is above zero: write 5/s",
		"1e3/s":                   "a rate is COUNT/PERIOD, of whole numbers: write 1000/s",
		"1M/month":                "a rate is COUNT/PERIOD, of whole numbers: write 1000000/month",
		"1.5 million/day":         "a rate is COUNT/PERIOD, of whole numbers: write 1500000/day",
		"1M/fortnight":            errRateForm.Error(),
		"10/1h30m":                "a rate is COUNT/PERIOD: write 10/90m",
		"10/s/s":                  "a rate is COUNT/PERIOD: write 10/s",
		"-5":                      errRateForm.Error(),
		"1e99/s":                  errRateForm.Error(),
		"1000000000000000/s":      "COUNT is too large: the largest that can be counted exactly is 1099511627776",
		"99999999999999999999/s":  "COUNT is too large: the largest that can be counted exactly is 1099511627776",
		"5/99999999999999999999s": "PERIOD is too long: the longest is 366d",
		"10/1h30":                 errRateForm.Error(),
		"10/mn":                   "a rate is COUNT/PERIOD: write 10/m",
		"10 MB/s":                 "a rate has no unit of bytes: write 10000000/s, and each request takes its bytes by its cost",
		"5GiB/month":              "a rate has no unit of bytes: write 5368709120/month, and each request takes its bytes by its cost",
		"64 KB per second":        "a rate has no unit of bytes: write 64000/s, and each request takes its bytes by its cost",
		"1500 bytes / 2m":         "a rate has no unit of bytes: write 1500/2m, and each request takes its bytes by its cost",
		"0MB/s":                   errRateForm.Error(),
		"10Mb/s":                  errRateForm.Error(),
		"99999PB/s":               errRateForm.Error(),
		"900000TB/s":              errRateForm.Error(),
		"10MB/fortnight":          errRateForm.Error(),
		"0.0/s":                   errRateForm.Error(),
		"5/fortnight":             errRateForm.Error(),
		"":                        errRateForm.Error(),
	} {
		if _, err := ParseRate(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
