package proxy

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/syncbuffer"
	"github.com/limitgate/limitgate/limit"
)

// TestSampledValues: a value that differs from that of a condition in letters, blanks, a port or a dot has a line for each limit,
// without the value.
func TestSampledValues(t *testing.T) {
	log := new(syncbuffer.Buffer)
	set := setOf(t, `{id: shop, by: [tenant], when: {host: shop.example}, rate: 1/s}, {id: beta, by: [tenant], group: b, when: {tier: beta*}, rate: 1/s}, {id: off, by: [tenant], group: c, when: {tier: gold}, rate: 1/s, mode: off}`)
	s := newSampledRequests(fixedLimits{set: set}.Set, false, slog.New(slog.NewTextHandler(log, nil)))
	look := func(name, value string) {
		s.look(&limit.Request{Tenant: "t", Op: "GET /x", Dims: []limit.Dim{{Name: name, Value: value}}})
	}
	for _, other := range []string{"shop.example", "other.example", "beta2", strings.Repeat("S", comparedValueBytes+1)} {
		look("host", other)
	}
	look("tier", "beta2")
	look("tier", "GOLD")
	if log.String() != "" {
		t.Errorf("without a mistake: %s", log)
	}
	for _, value := range []string{"Shop.example", "shop.example:443", " shop.example", "shop.example."} {
		look("host", value)
	}
	look("tier", "Beta7")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "dimension=host limit=shop plan=p reason=\"small letters and capitals differ\"") || !strings.Contains(lines[1], "dimension=tier limit=beta") || strings.Contains(log.String(), "hop.example") {
		t.Errorf("logged\n%s", log)
	}
}

// BenchmarkSampledValues measures the comparison of long values, with and without a port, with as many limits as are compared.
func BenchmarkSampledValues(b *testing.B) {
	var file strings.Builder
	for i := range comparedValues {
		fmt.Fprintf(&file, "{id: l%d, by: [tenant], group: g%d, when: {host: \"%s%d\"}, rate: 1/s},", i, i, strings.Repeat("d", comparedValueBytes-2), i)
	}
	limits := setOf(b, strings.TrimSuffix(file.String(), ",")).TenantLimits("t")
	for name, value := range map[string]string{"port": strings.Repeat("d", comparedValueBytes-4) + ".:80", "no port": strings.Repeat("d", comparedValueBytes)} {
		b.Run(name, func(b *testing.B) {
			req := &limit.Request{Tenant: "t", Op: "GET /x", Dims: []limit.Dim{{Name: "host", Value: value}}}
			b.ReportAllocs()
			for b.Loop() {
				limit.ValueSpellings(req, limits)
			}
		})
	}
}
