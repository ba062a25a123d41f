package limitimport

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestEnvoy compares the limits file and the remarks of each folder in testdata/envoy with those
// beside it.
func TestEnvoy(t *testing.T) {
	for _, name := range []string{"edge", "domains", "warnings", "hidden", "shadow", "unlimited"} {
		files, err := rlsconfig.ReadDir("testdata/envoy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		c, problems := rlsconfig.Parse(files, rlsconfig.Options{})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		expect(t, "testdata/envoy/"+name+".want", describe(Envoy(c, problems, "tenant"), nil))
	}
}

// TestEnvoyTenantNames: the key named tenant, where tenants are the values of another one, has a dimension of
// its own.
func TestEnvoyTenantNames(t *testing.T) {
	const file = "domain: d\ndescriptors:\n" +
		"  - {key: tenant, rate_limit: {unit: hour, requests_per_unit: 1}}\n" +
		"  - {key: tenant-key, rate_limit: {unit: hour, requests_per_unit: 2}}\n" +
		"  - {key: route, rate_limit: {unit: hour, requests_per_unit: 3}}\n"
	c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "d.yaml", Content: []byte(file)}}, rlsconfig.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	got := describe(Envoy(c, problems, "route"), nil)
	for _, want := range []string{"by: [tenant-key], rate: 2/h", "by: [tenant-key-], rate: 1/h", "by: [tenant], rate: 3/h"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// drawnKeys and drawnValues are the words of random configurations: few, so that rules overlap.
var (
	drawnKeys   = []string{"tenant", "user", "path"}
	drawnValues = []string{"", "", "a", "b", "ab", "a*", "*", "ab*", "*b"}
)

// drawDescriptors returns descriptors in YAML. Each limit has a number of its own.
func drawDescriptors(t *rapid.T, keys []string, number *int, indent string) string {
	var b strings.Builder
	word := rapid.Custom(func(t *rapid.T) [2]string {
		return [2]string{rapid.SampledFrom(keys).Draw(t, "key"), rapid.SampledFrom(drawnValues).Draw(t, "value")}
	})
	for _, w := range rapid.SliceOfNDistinct(word, 1, 5, rapid.ID).Draw(t, "descriptors") {
		fmt.Fprintf(&b, "%s- key: %s\n%s  value: %q\n", indent, w[0], indent, w[1])
		if strings.Contains(w[1], "*") && rapid.Bool().Draw(t, "shared") {
			fmt.Fprintf(&b, "%s  share_threshold: true\n", indent)
		}
		*number++
		switch rapid.IntRange(0, 4).Draw(t, "limit") {
		case 0: // none
		case 1:
			fmt.Fprintf(&b, "%s  rate_limit: {unit: hour, requests_per_unit: 0}\n", indent)
		default:
			fmt.Fprintf(&b, "%s  rate_limit: {unit: hour, requests_per_unit: %d}\n", indent, *number)
		}
		if rapid.IntRange(0, 3).Draw(t, "shadow") == 0 {
			fmt.Fprintf(&b, "%s  shadow_mode: true\n", indent)
		}
		rest := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == w[0] })
		if len(rest) > 0 && rapid.Bool().Draw(t, "below") {
			fmt.Fprintf(&b, "%s  descriptors:\n%s", indent, drawDescriptors(t, rest, number, indent+"  "))
		}
	}
	return b.String()
}

// explained returns the rates of the limits that apply to a request of these entries, and whether an enforced one does in the place of
// one in shadow mode.
func explained(l *limiter.Limiter, entries []rlsconfig.Entry) (rates []string, both bool) {
	places := map[string]limit.Mode{}
	req := limit.Request{Tenant: "other", Cost: 1}
	for _, e := range entries {
		if e.Key == "tenant" {
			req.Tenant = e.Value
		} else {
			req.Dims = append(req.Dims, limit.Dim{Name: e.Key, Value: e.Value})
		}
	}
	var batch limiter.Batch
	for _, x := range l.Explain(&batch, &req).Limits {
		switch {
		case !x.Applies, x.Limit.Action == limit.ActionAllow:
			continue
		case x.Limit.Action == limit.ActionLimit:
			rates = append(rates, fmt.Sprint(x.Limit.Rate.Count))
		case x.Limit.Action == limit.ActionDeny:
			rates = append(rates, "0")
		}
		place := x.Limit.Group + ":" + strings.Join(x.Limit.Level(), ",")
		if mode, found := places[place]; found && mode != x.Limit.Mode {
			both = true
		}
		places[place] = x.Limit.Mode
	}
	return rates, both
}

// TestEnvoyAdmitsNoMore: the limit of the rule that a descriptor meets applies to a request with its
// dimensions, unless a remark names the rule as not imported.
func TestEnvoyAdmitsNoMore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := 0
		file := "domain: d\ndescriptors:\n" + drawDescriptors(rt, drawnKeys, &number, "")
		c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "f", Content: []byte(file)}}, rlsconfig.Options{})
		if err := problems.Err(); err != nil {
			rt.Fatalf("%v:\n%s", err, file)
		}
		r := Envoy(c, problems, "tenant")
		set, _, err := config.ParseLimits("limits.yaml", r.File, limit.CompileOptions{IPMaxTTL: 3600e6})
		if err != nil {
			rt.Fatalf("%v:\n%s\nof\n%s", err, r.File, file)
		}
		addrs, _ := limit.NewAddrHasher(limit.RandomSecret(), limit.Prefixes{})
		l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Backstop: backstop.New(backstop.Options{}), Addrs: addrs, Timeout: time.Second}, set)
		for range 20 {
			var entries []rlsconfig.Entry
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(drawnKeys), 1, 3, rapid.ID).Draw(rt, "keys") {
				entries = append(entries, rlsconfig.Entry{Key: key, Value: rapid.SampledFrom([]string{"a", "ab", "abc", "b", "x"}).Draw(rt, "value")})
			}
			rule := c.Domain("d").Match(entries)
			if rule == nil || rule.Limit == nil {
				continue
			}
			dropped := slices.ContainsFunc(r.Remarks, func(remark Remark) bool {
				return remark.Line == rule.Line && strings.Contains(remark.Text, "is not imported")
			})
			rates, both := explained(l, entries)
			if both {
				rt.Fatalf("%v meets an enforced limit in the place of one in shadow mode:\n%s\n%s\n%v", entries, file, r.File, r.Remarks)
			}
			if !dropped && !slices.Contains(rates, fmt.Sprint(rule.Limit.RequestsPerUnit)) {
				rt.Fatalf("%v meets %d of %s, and here %v:\n%s\n%s\n%v", entries, rule.Limit.RequestsPerUnit, rule.Path, rates, file, r.File, r.Remarks)
			}
		}
	})
}
