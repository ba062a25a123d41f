package edge_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/internal/edge"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// admitted is a request that Limitgate admitted.
type admitted struct {
	webRequest
	at int64 // microseconds
}

// drawLimit draws a limit by the dimensions, as an entry of a list, and its conditions.
func drawLimit(t *rapid.T, id, by string, address bool) (text, conditions string) {
	fields := []string{"id: " + id, "by: [" + by + "]"}
	var when []string
	if op := rapid.SampledFrom([]string{"", "", "", "POST /login", "GET /s*", "GET *", "G*", "name"}).Draw(t, "op"); op != "" {
		when = append(when, "op: \""+op+"\"")
	}
	if address {
		if net := rapid.SampledFrom([]string{"", "", "", "", "198.51.100.0/24", "198.51.100.7", "\"2001:db8::/32\""}).Draw(t, "net"); net != "" {
			when = append(when, "ip: "+net)
		}
		if rapid.IntRange(0, 9).Draw(t, "by tenant") == 0 {
			when = append(when, "tenant: b")
		}
	}
	conditions = strings.Join(when, ", ")
	if conditions != "" {
		fields = append(fields, "when: {"+conditions+"}")
	}
	if action := rapid.SampledFrom([]string{"", "", "", "", "", "", "allow", "deny"}).Draw(t, "action"); action != "" {
		return "{" + strings.Join(append(fields, "action: "+action), ", ") + "}", conditions
	}
	count := rapid.IntRange(2, 40).Draw(t, "count")
	period := rapid.SampledFrom([]string{"s", "5s", "30s", "m", "90s", "5m", "700s", "h", "24h", "7d"}).Draw(t, "period")
	fields = append(fields, fmt.Sprintf("rate: %d/%s", count, period))
	algorithm := rapid.SampledFrom([]string{"token_bucket", "fixed_window", "sliding_window", "sliding_log"}).Draw(t, "algorithm")
	fields = append(fields, "algorithm: "+algorithm)
	if algorithm == "token_bucket" && rapid.Bool().Draw(t, "has burst") {
		fields = append(fields, fmt.Sprintf("burst: %d", rapid.IntRange(2, 80).Draw(t, "burst")))
	}
	if rapid.IntRange(0, 4).Draw(t, "has cost") == 0 {
		fields = append(fields, fmt.Sprintf("cost: %d", rapid.IntRange(1, 2).Draw(t, "cost")))
	}
	switch rapid.IntRange(0, 9).Draw(t, "mode") {
	case 0:
		fields = append(fields, "mode: shadow")
	case 1:
		fields = append(fields, "enforce: 50%")
	}
	return "{" + strings.Join(fields, ", ") + "}", conditions
}

// drawFile draws a limits file: shared limits by ip, by op and by both, and two plans. Limits of a
// level differ in their conditions, since a file with two that are equally specific is refused.
func drawFile(t *rapid.T) string {
	draw := func(name, by string, address bool) string {
		var limits []string
		taken := map[string]bool{"": true} // of the one that holds all
		for i := range rapid.IntRange(0, 4).Draw(t, name) {
			text, conditions := drawLimit(t, fmt.Sprintf("%s%d", name, i), by, address)
			if !taken[conditions] {
				taken[conditions] = true
				limits = append(limits, text)
			}
		}
		if rapid.IntRange(0, 3).Draw(t, name+" holds all") > 0 {
			limits = append(limits, fmt.Sprintf("{id: %s, by: [%s], rate: %d/%s, algorithm: %s}", name, by, rapid.IntRange(2, 60).Draw(t, "count"),
				rapid.SampledFrom([]string{"s", "m", "100s", "5m", "h", "24h"}).Draw(t, "period"), rapid.SampledFrom([]string{"token_bucket", "fixed_window", "sliding_window", "sliding_log"}).Draw(t, "algorithm")))
		}
		return strings.Join(limits, ", ")
	}
	shared := []string{}
	for _, by := range []string{"ip", "ip, op", "op"} {
		name := strings.ReplaceAll(by, ", ", "-")
		if text := draw(name, by, true); text != "" {
			shared = append(shared, text)
		}
	}
	if when := rapid.SampledFrom([]string{"", "", "", "", "", "", "ip: 198.51.100.0/24", "op: POST /login", "tenant: b", "op: GET /s*, ip: 198.51.100.7"}).Draw(t, "shared allows"); when != "" {
		shared = append(shared, "{id: every-level, when: {"+when+"}, action: allow}")
	}
	var plans []string
	for _, plan := range []string{"p", "q"} {
		text := draw("tenant", "tenant", false)
		if rapid.IntRange(0, 5).Draw(t, "replaces") == 0 && strings.Contains(text, "{id: tenant,") {
			text += ", {id: put, by: [tenant, op], when: {op: \"POST /login\"}, rate: 7/m, replaces: [tenant]}"
		}
		if rapid.IntRange(0, 9).Draw(t, "plan allows") == 0 {
			text = strings.TrimPrefix(text+rapid.SampledFrom([]string{", {id: vip, by: [ip], action: allow}", ", {id: vip, when: {ip: 198.51.100.0/24}, action: allow}"}).Draw(t, "allowed"), ", ")
		}
		plans = append(plans, plan+": ["+text+"]")
	}
	return fmt.Sprintf("version: 1\nmax_levels: 64\ndefault_plan: p\nplans: {%s}\ntenants: {b: {plan: q}}\nshared: [%s]\n", strings.Join(plans, ", "), strings.Join(shared, ", "))
}

// drawTraffic sends random bursts through the limits, and returns what is admitted.
func drawTraffic(t *rapid.T, set *limit.Set) []admitted {
	addrs, err := limit.NewAddrHasher([]byte("0123456789abcdef"), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.Int64Range(0, 24*3600e9).Draw(t, "start")))
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Addrs: addrs, Timeout: time.Hour, Now: func() time.Time { return now }}, set)
	var batch limiter.Batch
	var out []admitted
	for range rapid.IntRange(1, 25).Draw(t, "bursts") {
		now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 900 * time.Millisecond, time.Second, 10 * time.Second, 59999 * time.Millisecond, time.Minute, 4 * time.Minute, time.Hour, 8 * time.Hour}).Draw(t, "pause"))
		op := rapid.SampledFrom([]string{"GET /", "POST /login", "GET /search", "GET /s/1"}).Draw(t, "op")
		addr := rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.1", "198.51.100.7", "198.51.100.8", "2001:db8::1"}).Draw(t, "addr")
		tenant := rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "tenant")
		gap := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 500 * time.Millisecond}).Draw(t, "gap")
		for range rapid.IntRange(1, 130).Draw(t, "requests") {
			req := limit.Request{Tenant: tenant, Op: op, Addr: netip.MustParseAddr(addr), Cost: 1}
			batch.Reset()
			batch.Requests = append(batch.Requests, req)
			l.Decide(&batch)
			if batch.Decisions[0].Allowed {
				method, path, _ := strings.Cut(op, " ")
				out = append(out, admitted{webRequest{req.Addr, method, path, tenant}, now.UnixMicro()})
			}
			now = now.Add(gap)
		}
	}
	return out
}

// TestNeverStricter checks that no rule of WAF and no usage plan denies a client that sends what the
// limits admit: in any interval of one to three windows.
func TestNeverStricter(t *testing.T) {
	rules, used := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		file := drawFile(t)
		set, err := compileDrawn(file)
		if err != nil {
			t.Skip(err) // two limits happen to be equally specific
		}
		requests := drawTraffic(t, set)
		waf, err := edge.Render(set, edge.Options{Kind: edge.KindWAF, Scope: edge.ScopeRegional, Margin: 1, APIKeyHeader: "X-Api-Key"})
		if err == nil {
			for _, r := range rulesOf(t, waf.Template) {
				rules++
				if r.fullest(t, file, requests)*3 >= r.limit {
					used++
				}
			}
		}
		plans, err := edge.Render(set, edge.Options{Kind: edge.KindUsagePlans})
		if err == nil {
			checkUsagePlans(t, file, plans.Template, requests)
		}
	})
	t.Logf("%d rules, %d used by a third", rules, used)
	if rules < 50 || used == 0 {
		t.Errorf("of %d rules %d were used by a third: the traffic shows nothing", rules, used)
	}
}

// fullest returns the most requests of one client in a window. It fails the test where a window has more
// than the rule admits.
func (r webRule) fullest(t *rapid.T, file string, requests []admitted) (most int64) {
	clients := map[string][]int64{}
	for _, req := range requests {
		client := req.addr.String()
		if r.aggregate == "CUSTOM_KEYS" {
			client = req.key
		}
		if r.counts(req.webRequest) {
			clients[client] = append(clients[client], req.at)
		}
	}
	for client, times := range clients {
		for n := int64(1); n <= 3; n++ {
			for first, last := 0, 0; first < len(times); first++ {
				for last < len(times) && times[last] < times[first]+n*r.window*1e6 {
					last++
				}
				count := int64(last - first)
				if count > n*r.limit {
					t.Fatalf("%s: rule %s admits %d in %d s, and the limits admitted %d in %d windows\n%s", client, r.name, r.limit, r.window, count, n, file)
				}
				if n == 1 {
					most = max(most, count)
				}
			}
		}
	}
	return most
}

// checkUsagePlans checks that the bucket and the quota of each usage plan admit the requests.
func checkUsagePlans(t *rapid.T, file string, text []byte, requests []admitted) {
	var parsed map[string]any
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	for plan, tenant := range map[string]string{"PUsagePlan": "a", "QUsagePlan": "b"} {
		properties := at(parsed, "Resources", plan, "Properties")
		rate, burst := number(at(properties, "Throttle", "RateLimit")), number(at(properties, "Throttle", "BurstLimit"))
		quota, period := number(at(properties, "Quota", "Limit")), at(properties, "Quota", "Period")
		tokens, last, used, begins := burst, int64(0), 0.0, int64(-1)
		for _, req := range requests {
			if req.key != tenant {
				continue
			}
			tokens, last = min(burst, tokens+float64(req.at-last)/1e6*rate)-1, req.at
			if burst > 0 && tokens < -1e-6 {
				t.Fatalf("%s of %v a second, burst %v, denies at %d\n%s", plan, rate, burst, req.at, file)
			}
			if start := periodOf(req.at, period); start != begins {
				used, begins = 0, start
			}
			if used++; quota > 0 && used > quota {
				t.Fatalf("%s of %v in a %v is used up at %d\n%s", plan, quota, period, req.at, file)
			}
		}
	}
}

// periodOf returns the beginning of the period of a quota, in days: weeks begin on Sundays, and the first
// of March 2026 is one.
func periodOf(at int64, period any) int64 {
	days := at / (24 * 3600e6)
	sunday := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Unix() / (24 * 3600)
	switch period {
	case "DAY":
		return days
	case "WEEK":
		return (days - sunday) / 7
	}
	month := time.UnixMicro(at).UTC()
	return int64(month.Year()*12) + int64(month.Month())
}

func number(value any) float64 {
	switch v := value.(type) {
	case int:
		return float64(v)
	case float64:
		return v
	}
	return 0
}
