//go:build long

package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/dashboard"
)

// watchedTenants are those of the demo whose decisions a recording follows. They are spread over
// all masters.
const watchedTenants = 20

// recording has what a proxy reports, once a second.
type recording struct {
	p       *proxy
	client  *redis.Client
	newest  atomic.Pointer[dashboard.Sample]
	began   time.Time
	seconds []second
}

// second is what a proxy reported in one second of a recording. It is empty for a second that
// the machine missed.
type second struct {
	series map[string]float64 // of /metrics, by their names with labels
	page   *dashboard.Sample
	checks pacedTally // one of each watched tenant
}

// startRecording opens the page of a proxy until the test ends, and waits for its first sample.
func startRecording(t *testing.T, p *proxy) *recording {
	t.Helper()
	r := &recording{p: p, client: p.client()}
	reply := openPage(t, p)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { _ = reply.Body.Close() }()
		in := bufio.NewReader(reply.Body)
		for {
			s, err := nextSample(in)
			if err != nil {
				if t.Context().Err() == nil {
					t.Errorf("the page of the proxy: %v", err)
				}
				return
			}
			r.newest.Store(s)
		}
	})
	t.Cleanup(wg.Wait)
	eventually(t, "the page has a sample", func() bool { return r.newest.Load() != nil })
	r.began = time.Now()
	return r
}

// now returns the number of the last second that is recorded.
func (r *recording) now() int { return len(r.seconds) - 1 }

// pass records a number of seconds.
func (r *recording) pass(seconds int) {
	for range seconds {
		r.next()
	}
}

// next waits for the next second, and records it.
func (r *recording) next() *second {
	due := r.began.Add(time.Duration(len(r.seconds)) * time.Second)
	for ; time.Since(due) > time.Second; due = due.Add(time.Second) {
		r.seconds = append(r.seconds, second{})
	}
	pause(time.Until(due))
	r.seconds = append(r.seconds, second{
		series: parseSeries(r.p.get("/metrics")), page: r.newest.Load(),
		checks: checkPipeline(r.client, watchedTenants, func(i int) string { return fmt.Sprintf("shop-%02d", i) }),
	})
	return &r.seconds[r.now()]
}

// of returns a series over all seconds, with the value of the second before where one is missed.
func (r *recording) of(series string) []float64 {
	all := make([]float64, len(r.seconds))
	for i, s := range r.seconds {
		if s.series != nil {
			all[i] = s.series[series]
		} else if i > 0 {
			all[i] = all[i-1]
		}
	}
	return all
}

var seriesLine = regexp.MustCompile(`(?m)^(limitgate_\w+(?:\{.*\})?) (\S+)$`)

// parseSeries returns the series of Limitgate in a scrape.
func parseSeries(scrape string) map[string]float64 {
	all := map[string]float64{}
	for _, m := range seriesLine.FindAllStringSubmatch(scrape, -1) {
		all[m[1]], _ = strconv.ParseFloat(m[2], 64)
	}
	return all
}

// startDemo sends the demo's traffic to a proxy. The function that it returns ends the traffic, and
// returns its report.
func startDemo(t *testing.T, p *proxy) (end func() string) {
	t.Helper()
	demo := exec.CommandContext(t.Context(), buildDemo(t), "--addr", p.addr, "--for", "10m")
	var out bytes.Buffer
	demo.Stdout, demo.Stderr = &out, &out
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceValue(func() string {
		_ = demo.Process.Signal(syscall.SIGINT)
		if err := demo.Wait(); err != nil {
			t.Errorf("the demo: %v", err)
		}
		return out.String()
	})
	t.Cleanup(func() { end() })
	return end
}
