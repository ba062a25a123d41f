package cluster

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// TestNodeThatReadsNothing checks that callers leave at their deadline even if a batch
// cannot be sent because the node does not read and all buffers are full.
func TestNodeThatReadsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := startFake(t, nil, func(net.Conn, []string) error { <-ctx.Done(); return errEnough })
	defer f.close()
	defer cancel()
	const ioTimeout = 20 * time.Second
	s := openThrough(t, Options{IOTimeout: ioTimeout}, func(s Socket) Socket { return s }, f.addr())
	set := compile(t, spec{ID: "op", By: []string{"tenant", "op"}, Rate: "100/s"})
	l := limiter.New(limiter.Options{Store: s, Backstop: &refuser{asked: map[string]int{}}, Addrs: testAddrs, Timeout: abuseDeadline}, set)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var b limiter.Batch
			for i := range maxBatch {
				b.Requests = append(b.Requests, limit.Request{Tenant: fmt.Sprint("t", g), Op: fmt.Sprint(i, strings.Repeat("x", 1000)), Cost: 1})
			}
			began := time.Now()
			l.Decide(&b)
			// Callers that do not leave wait until the connection is closed.
			if took := time.Since(began); took > ioTimeout/2 {
				t.Errorf("a decision took %s, its deadline is %s", took, abuseDeadline)
			}
		})
	}
	wg.Wait()
}
