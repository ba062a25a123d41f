package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/accesslog"
	"github.com/limitgate/limitgate/limit"
)

// TestRateThatDeniesNothing replays a log of two months with the number that would deny nothing, and with one less: that denies
// some. So windows begin where those of the limit do.
func TestRateThatDeniesNothing(t *testing.T) {
	tenant, err := accesslog.ParseTemplate("t")
	if err != nil {
		t.Fatal(err)
	}
	op, err := accesslog.ParseTemplate(accesslog.DefaultOp)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var log strings.Builder
		at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 150).Draw(t, "requests") {
			at = at.Add(time.Duration(rapid.IntRange(0, 60*60*15).Draw(t, "seconds")) * time.Second)
			fmt.Fprintf(&log, "192.0.2.1 - - [%s] \"GET / HTTP/1.1\" 200 1\n", at.Format("02/Jan/2006:15:04:05 -0700"))
		}
		period := rapid.SampledFrom([]string{"24h", "7m", "7d", "day", "day, timezone: Europe/Berlin", "month", "month, timezone: America/St_Johns"}).Draw(t, "period")
		replay := func(count int64) *LimitReport {
			file := fmt.Sprintf("{version: 1, default_plan: p, plans: {p: [{id: own, by: [tenant], algorithm: fixed_window, rate: %d/%s}]}}", count, period)
			set, _, err := config.ParseLimits("f", []byte(file), limit.CompileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Local(t.Context(), strings.NewReader(log.String()), set, Options{Tenant: tenant, Op: op})
			if err != nil {
				t.Fatal(err)
			}
			return &r.Limits[0]
		}
		enough := replay(1_000_000).Rates.Nothing
		if l := replay(enough); l.Denied != 0 || l.Rates.Nothing != enough {
			t.Fatalf("%d/%s denies %d, and %d is said to deny nothing", enough, period, l.Denied, l.Rates.Nothing)
		}
		if enough > 1 && replay(enough-1).Denied == 0 {
			t.Fatalf("%d/%s denies nothing", enough-1, period)
		}
	})
}
