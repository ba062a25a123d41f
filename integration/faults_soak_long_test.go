//go:build long

package integration

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/faultnet"
)

const (
	soakFor    = 40 * time.Second
	soakPause  = 150 * time.Millisecond // between two faults
	blip       = 200 * time.Millisecond // duration of each, too short for a promotion
	growthMost = 64 << 20               // of a proxy's memory
)

// blips are very short faults.
func (s *scene) blips(t *testing.T) []func() {
	masters := s.masters()
	each := func(do func(l *faultnet.Link)) { links(do)(t, s) }
	return []func(){
		func() { masters[0].Stop(); pause(blip); masters[0].Cont() },
		func() { execute(t, masters, "CLIENT", "KILL", "TYPE", "normal") },
		func() { s.Nodes[shards].Kill(); pause(blip); s.Nodes[shards].Restart() },
		func() { execute(t, masters, "SCRIPT", "FLUSH") },
		func() {
			each(func(l *faultnet.Link) { l.Reset(0.05) })
			pause(blip)
			each(func(l *faultnet.Link) { l.Reset(0) })
		},
		func() { s.links[1].Block(); pause(blip); s.links[1].Unblock() },
		func() { masters[2].Stop(); pause(blip); masters[2].Cont() },
	}
}

// TestLongFaultsLeaveNothing: after many short faults a proxy with the same clients has
// as many goroutines as before, and its memory has not grown by more than growthMost.
func TestLongFaultsLeaveNothing(t *testing.T) {
	o := &outcome{fault: fault{
		name: "many short faults, one after another", linked: true,
		// There must be no promotion, not even on a busy machine.
		args: []string{"--cluster-node-timeout", "10000"},
	}}
	s := setScene(t, o.fault)
	o.scene = s
	warm := startBarrage(s.clients)
	pause(3 * time.Second)
	warm.end()
	before := s.footprints(t)

	stalls := watchStalls(t)
	b := startBarrage(s.clients)
	pause(time.Second)
	o.made = time.Now()
	made, half := 0, []footprint(nil)
	for time.Since(o.made) < soakFor {
		if half == nil && time.Since(o.made) > soakFor/2 {
			half = s.footprints(t)
		}
		for _, make := range s.blips(t) {
			make()
			made++
			pause(soakPause)
		}
	}
	o.healed = time.Now()
	s.WaitHealthy(t)
	s.awaitClosed(t)
	pause(3 * time.Second) // so that every connection is used again
	o.samples, o.stalls = b.end(), stalls()
	o.ok = normalSince(o.samples, o.made)
	o.check(t)
	o.note("%d faults", made)
	s.compareFootprints(t, o, before, half)
	table := newTable()
	table.add(o)
	fmt.Printf("\n%s\n\n", table)
}

// footprint is the goroutines and the memory of a proxy.
type footprint struct{ goroutines, memory int }

var (
	goroutinesMetric = regexp.MustCompile(`(?m)^go_goroutines (\S+)$`)
	memoryMetric     = regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)$`)
)

func (p *proxy) footprint(t *testing.T) footprint {
	t.Helper()
	page := p.get("/metrics")
	read := func(metric *regexp.Regexp) int {
		found := metric.FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("no %s on the page of metrics", metric)
		}
		n, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	return footprint{read(goroutinesMetric), read(memoryMetric)}
}

// footprints returns those of all proxies.
func (s *scene) footprints(t *testing.T) []footprint {
	t.Helper()
	var all []footprint
	for _, p := range s.proxies {
		all = append(all, p.footprint(t))
	}
	return all
}

// compareFootprints fails the test if a proxy has grown.
func (s *scene) compareFootprints(t *testing.T, o *outcome, before, half []footprint) {
	t.Helper()
	for i, p := range s.proxies {
		var after footprint
		eventually(t, fmt.Sprintf("proxy %d has the %d goroutines that it had", i, before[i].goroutines), func() bool {
			after = p.footprint(t)
			return after.goroutines == before[i].goroutines
		})
		mib := func(f footprint) float64 { return float64(f.memory) / (1 << 20) }
		o.note("proxy %d: %d goroutines before, %d after; MiB resident %.1f before, %.1f half way, %.1f after",
			i, before[i].goroutines, after.goroutines, mib(before[i]), mib(half[i]), mib(after))
		if after.memory > before[i].memory+growthMost {
			t.Errorf("proxy %d grew from %d to %d bytes", i, before[i].memory, after.memory)
		}
	}
}
