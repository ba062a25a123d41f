//go:build long

package integration

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestLongEnvoyHang stops the Redis of a rate limit service under load, and prints how long answers take
// before, and from then on: Envoy waits 20 ms. Each request is answered.
func TestLongEnvoyHang(t *testing.T) {
	folder, node := t.TempDir(), redistest.Start(t)
	if err := os.WriteFile(filepath.Join(folder, "mesh.yaml"), []byte(meshRules), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serve(t, "", "--redis", node.Addr, "--rls", "127.0.0.1:0", "--rls-config", folder)
	client := p.rateLimitClient(t)
	ask := func() (took []time.Duration) {
		var mu sync.Mutex // guards took
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 2000 {
					begin := time.Now()
					got, err := asksMesh(context.Background(), client, "wide=x", "tight=x")
					if err != nil || !strings.Contains(got, " ") {
						t.Errorf("%s, %v", got, err)
						return
					}
					mu.Lock()
					took = append(took, time.Since(begin))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(took)
		return took
	}
	for _, state := range []string{"with its Redis", "while it hangs"} {
		if state != "with its Redis" {
			node.Stop()
		}
		took := ask()
		at := func(part float64) time.Duration { return took[int(part*float64(len(took)-1))] }
		t.Logf("%s: p50 %v, p99 %v, p99.9 %v, longest %v of %d", state, at(0.5), at(0.99), at(0.999), at(1), len(took))
	}
}
