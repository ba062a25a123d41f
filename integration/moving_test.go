package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// movingPages are the pages for users of other limiters.
func movingPages(tb testing.TB) (paths []string) {
	tb.Helper()
	paths, err := filepath.Glob("../docs/moving/*.md")
	if err != nil || len(paths) < 8 {
		tb.Fatalf("%d pages: %v", len(paths), err)
	}
	return paths
}

// TestMovingLimits: the limits of each page are valid, and lint warns of none of them.
func TestMovingLimits(t *testing.T) {
	for _, path := range movingPages(t) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(content), "\n```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "\n```\n")
			_, warnings, err := config.ParseLimits(path, []byte(block), limit.CompileOptions{IPMaxTTL: 3600e6})
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			for _, w := range warnings {
				if !w.Redis && w.Field != "default_plan" {
					t.Errorf("%s: %s", path, w.Format(path))
				}
			}
		}
	}
}

// TestMovingShadow: limits that were in the shadow keep what they counted when they are enforced,
// as the pages say: there is no gap, and no second burst.
func TestMovingShadow(t *testing.T) {
	const shadow = `
version: 1
default_plan: p
plans:
  p:
    - {id: window, by: [tenant, op], rate: 10/h, algorithm: fixed_window, mode: shadow, on_error: open}
    - {id: bucket, by: [tenant], rate: 10/h, mode: shadow, on_error: open}
shared:
  - {id: ip, by: [ip], rate: 10/15m, algorithm: sliding_window, mode: shadow, on_error: open}
`
	path := writeLimits(t, shadow)
	p := serve(t, path, exact...)
	client := p.client()
	ask := func() (allowed, remaining any) {
		reply, err := client.Do(t.Context(), "RL.CHECK", "acme", "op", "203.0.113.7").Slice()
		if err != nil {
			t.Fatal(err)
		}
		return reply[0], reply[2]
	}
	for range 7 {
		if allowed, remaining := ask(); allowed != int64(1) || remaining != int64(-1) {
			t.Fatalf("a limit in the shadow answers %v, %v left", allowed, remaining)
		}
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(shadow, "mode: shadow", "mode: enforce")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), "RL.CONFIG", "RELOAD").Err(); err != nil {
		t.Fatal(err)
	}
	for left := int64(2); left >= 0; left-- {
		if allowed, remaining := ask(); allowed != int64(1) || remaining != left {
			t.Fatalf("admitted %v, %v left, want %d", allowed, remaining, left)
		}
	}
	for _, id := range []string{"window", "bucket"} {
		reply, err := client.Do(t.Context(), "RL.PEEK", "acme", "op", "203.0.113.7", "1", "LIMIT", id).Slice()
		if err != nil || reply[0] != int64(0) {
			t.Errorf("%s has units left: %v, %v", id, reply, err)
		}
	}
	if allowed, _ := ask(); allowed != int64(0) {
		t.Error("the 11th of 10 is admitted")
	}
}
