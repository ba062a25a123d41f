package accesslog

import (
	"testing"
	"time"
)

// stampLayout is the layout of a log's times for the time package.
const stampLayout = "02/Jan/2006:15:04:05 -0700"

func TestParseTimestampAgreesWithTheTimePackage(t *testing.T) {
	stamps := []string{
		"17/May/2015:10:05:03 +0000",
		"17/May/2015:10:05:03 -0000",
		"17/May/2015:10:05:03 -0700",
		"17/May/2015:10:05:03 +0530",
		"01/Jan/2015:00:30:00 +0100", // The year before, in UTC.
		"31/Dec/2015:23:30:00 -0930", // The year after.
		"29/Feb/2016:23:59:59 +0000",
		"28/Feb/2015:00:00:00 +1400",
		"31/Mar/0001:00:00:00 -1200",
		"30/Apr/9999:00:00:00 +0000",
		"30/Jun/2015:00:00:00 +0000",
		"31/Jul/2015:00:00:00 +0000",
		"31/Aug/2015:00:00:00 +0000",
		"30/Sep/2015:00:00:00 +0000",
		"31/Oct/2015:00:00:00 +0000",
		"30/Nov/2015:00:00:00 +0000",
	}
	for _, s := range stamps {
		want, err := time.Parse(stampLayout, s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseTimestamp(s)
		if err != nil {
			t.Errorf("parseTimestamp(%s): %v", s, err)
		} else if !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("parseTimestamp(%s) = %v, want %v", s, got, want.UTC())
		}
	}
}

func TestParseTimestampRejectsWhatIsNoTime(t *testing.T) {
	stamps := []string{
		"",
		"17/May/2015:10:05:03",
		"17/May/2015:10:05:03 0000",
		"17/May/2015:10:05:03 *0000",
		"17/May/2015 10:05:03 +0000",
		"17/may/2015:10:05:03 +0000",
		"17/Mai/2015:10:05:03 +0000",
		"1x/May/2015:10:05:03 +0000",
		"00/May/2015:10:05:03 +0000",
		"32/May/2015:10:05:03 +0000",
		"29/Feb/2015:10:05:03 +0000",
		"17/May/2015:24:00:00 +0000",
		"17/May/2015:10:60:00 +0000",
		"17/May/2015:10:05:60 +0000",
		"17/May/2015:10:05:03 +2400",
		"17/May/2015:10:05:03 +0060",
		"17/May/2015:10:05:03 +00000",
		"2015-05-17T10:05:03+00:00",
	}
	for _, s := range stamps {
		if got, err := parseTimestamp(s); err == nil {
			t.Errorf("parseTimestamp(%s) = %v, want an error", s, got)
		}
	}
}
