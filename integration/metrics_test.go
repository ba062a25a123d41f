package integration

import (
	"maps"
	"os"
	"regexp"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestMetricsPage: docs/metrics.md lists the metrics of a proxy in memory and of one
// on a Redis, with their types, and no others.
func TestMetricsPage(t *testing.T) {
	content, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	types := func(pattern, text string) map[string]string {
		found := map[string]string{}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found[m[1]] = m[2]
		}
		return found
	}
	page := types("(?m)^\\| `(\\w+)` \\| (\\w+) \\|", string(content))
	served := map[string]string{}
	for _, flags := range [][]string{nil, {"--redis", redistest.Start(t).Addr}} {
		p := serve(t, "", append(flags, exact...)...)
		if _, err := check(p.client(), "t", "-", "-"); err != nil {
			t.Fatal(err)
		}
		maps.Copy(served, types(`(?m)^# TYPE (limitgate_\w+) (\w+)$`, p.get("/metrics")))
	}
	if len(served) < 10 || !maps.Equal(page, served) {
		t.Errorf("docs/metrics.md has\n%v\nand proxies have\n%v", page, served)
	}
}
