package capacity

import (
	"strings"
	"testing"
	"time"
)

// TestBadPrices: a file of prices with a mistake is refused with its place.
func TestBadPrices(t *testing.T) {
	const good = `{"date":"2026-11-01","region":"eu-central-1","currency":"USD","source":"s","nodes":[{"type":"cache.r7g.large","engine":"valkey","usd_per_hour":0.2,"source":"s"}]}`
	p, err := ParsePrices([]byte(good))
	if err != nil || p.node("cache.r7g.large", "valkey").USDPerHour != 0.2 || p.nodeType("cache.r7g.large").Gbps != 0.937 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, test := range []struct{ old, new, want string }{
		{`"date":`, `"dated":`, `line 1: there is no field "dated", the fields are date, region, currency, source, node_types, nodes, edges, proxy, transfer, emf: want a file as limitgate plan --print-prices prints`},
		{`"source":"s","nodes"`, `"source":"s","source":"t","nodes"`, `line 1: the field "source" is there twice in one object`},
		{`usd_per_hour":0.2`, `usd_per_hour":"0.2"`, "nodes/0/usd_per_hour must be a number: "},
		{`usd_per_hour":0.2`, `USD_per_hour":0.2`, `there is no field "USD_per_hour", the fields are type, engine, usd_per_hour, source: `},
		{`usd_per_hour":0.2`, `usd_per_hour":-1`, "node cache.r7g.large valkey: a number is below zero"},
		{`usd_per_hour":0.2`, `usd_per_hour":1e308`, "node cache.r7g.large valkey: a number is above 1000000"},
		{`}]}`, `}],"edges":[{"edge":"http-api","source":"s","tiers":[{"usd_per_million":1e308}]}]}`, "a number is above 1000000"},
		{`2026-11-01`, `1.11.2026`, `"1.11.2026" is not a date`},
		{`eu-central-1`, ``, "region and source are needed"},
		{`USD`, `EUR`, `"EUR" is not USD`},
		{`0.2,"source":"s"`, `0.2`, "node cache.r7g.large valkey: source is needed"},
		{`valkey`, `memcached`, `"memcached" is no engine`},
		{`cache.r7g.large`, `cache.x1.large`, "node_types does not have it"},
		{`}]}`, `},{"type":"cache.r7g.large","engine":"valkey","usd_per_hour":1,"source":"s"}]}`, "it is there twice"},
		{`}]}`, `}]} {}`, "parse prices"},
		{`"nodes":[{`, "\"nodes\":\n5,\"edges\":[{", "line 2: nodes must be a list: "},
		{good, `[]`, "line 1: an object with the fields date, region,"},
		{`}]}`, `}],"edges":[{"edge":"nginx","source":"s"}]}`, `"nginx": there is no such edge`},
		{`}]}`, `}],"edges":[{"edge":"http-api","source":"s"}]}`, "it has no tiers"},
		{`}]}`, `}],"edges":[{"edge":"http-api","source":"s","tiers":[{"up_to":5,"usd_per_million":1}]}]}`, "the last one alone has no up_to"},
		{`}]}`, `}],"edges":[{"edge":"http-api","source":"s","tiers":[{"up_to":5,"usd_per_million":1},{"up_to":4,"usd_per_million":1},{"usd_per_million":1}]}]}`, "tiers go up"},
	} {
		if _, err := ParsePrices([]byte(strings.Replace(good, test.old, test.new, 1))); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.new, err, test.want)
		}
	}
}

// TestStale: prices are stale 180 days after their date.
func TestStale(t *testing.T) {
	prices := input(t, 1).Prices
	for date, want := range map[string]bool{"2026-01-01": false, "2026-10-02": false, "2027-03-31": false, "2027-04-01": true} {
		now, err := time.Parse(time.DateOnly, date)
		if err != nil {
			t.Fatal(err)
		}
		if got := prices.Stale(now); got != want {
			t.Errorf("%s: %v", date, got)
		}
	}
}

// TestMeasured: a measurement replaces the CPU per call and per further field.
func TestMeasured(t *testing.T) {
	m := Measured{Date: "2026-11-01", Store: "Valkey 8 at h:1", CallsPerScript: 5, Points: []MeasuredPoint{{1, 4.2, 10}, {2, 6, 10}, {4, 9, 10}}}
	content, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseMeasured(content)
	if err != nil {
		t.Fatal(err)
	}
	in := input(t, 1e6)
	read.Apply(in)
	if in.CallCPU.Value != 4.2 || in.FieldCPU.Value != 1.6 || in.CallCPU.Origin != OriginMeasured || in.StoreTLS.Value != 1.90 {
		t.Errorf("got %+v, %+v", in.CallCPU, in.FieldCPU)
	}
	read.TLS = true
	read.Apply(in)
	if in.StoreTLS.Value != 1 {
		t.Errorf("a measurement by TLS is multiplied by %v", in.StoreTLS.Value)
	}
	for _, bad := range []string{`{}`, `{"date":"2026-11-01","points":[{"buckets":1,"cpu_us":1}]}`, strings.Replace(string(content), "4.2", "0", 1), strings.Replace(string(content), "tls", "tsl", 1)} {
		if m, err := ParseMeasured([]byte(bad)); err == nil {
			t.Errorf("%s: %+v", bad, m)
		}
	}
}

// TestParseCount: numbers as people write them.
func TestParseCount(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "50000": 50_000, "50k": 50_000, "1.5M": 1.5e6, "2G": 2e9, "0.8": 0.8, "-1": -1, "9999999G": 9999999e9} {
		if got, err := ParseCount(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "k", "M1", "--1", "60%", "1e9", "NaN", "inf", "0x10", "1_000", "1,000", "1 M", "2T", "1.2.3"} {
		if got, err := ParseCount(text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}
