//go:build long

package integration

import (
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/internal/awstest"
)

const (
	coldTenants = 10_000
	coldStarts  = 3
	coldGoal    = 5 * time.Second // from exec to ready, without reading the table
	memoryGoal  = 1024.0          // bytes for each tenant
)

// TestLongColdStart measures the costs of a table of many tenants: writing and reading
// it, and the start of a proxy with it, without and with AWS, in time and in memory.
func TestLongColdStart(t *testing.T) {
	s := newAtomicSite(t)
	push, pull := s.pushAndPull(crowdOfTenants(t, coldTenants, "free"))
	t.Logf("%d tenants are pushed in %s, %.0f items a second, and pulled in %s", coldTenants, ms(push), coldTenants/push.Seconds(), ms(pull))
	scans := make([]time.Duration, coldStarts)
	for i := range scans {
		scans[i] = s.rawScan(t)
	}
	scan := slices.Min(scans)
	t.Logf("the emulator's own scan, in %d segments, takes %s", rawSegments, rounded(scans))

	snapshot := filepath.Join(t.TempDir(), "snapshot")
	starts := make([]time.Duration, coldStarts)
	var p *proxy
	for i := range starts {
		p, starts[i] = s.ready(t, append(s.serveArgs(snapshot), "--pprof"))
	}
	t.Logf("from exec to ready: %s, that is %s beyond the scan (goal < %s)", rounded(starts), ms(slices.Max(starts)-scan), coldGoal)
	if slices.Max(starts)-scan > coldGoal {
		t.Error("that is too long")
	}
	tenantMemory(t, s, p)
	stallsOfProxy(t, s, p)
	if err := p.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}

	// Nothing listens there.
	away := awstest.Endpoint("http://127.0.0.1:1")
	for i := range starts {
		p, starts[i] = s.ready(t, s.serveArgs(snapshot), away...)
	}
	enforce(t, "t0009998", 10_000, p) // no change of a plan affects it
	t.Logf("from exec to ready with the snapshot, while AWS refuses connections: %s", rounded(starts))
}

// TestLongThrottledTable is TestThrottledTable with many tenants.
func TestLongThrottledTable(t *testing.T) {
	relay := &awstest.Relay{Throttle: tableThrottle}
	s := newAtomicSite(t).behind(relay)
	push, pull := s.pushAndPull(crowdOfTenants(t, coldTenants, "free"))
	t.Logf("with %.0f %% of requests throttled, %d in all, %d tenants are pushed in %s and pulled in %s, without a word of it",
		100*tableThrottle, relay.Throttled.Load(), coldTenants, ms(push), ms(pull))
	relay.Throttled.Store(0)
	p, took := s.ready(t, s.serveArgs(filepath.Join(t.TempDir(), "snapshot")))
	t.Logf("from exec to ready, with %d requests throttled: %s", relay.Throttled.Load(), ms(took))
	if said := throttling.FindString(p.output()); said != "" {
		t.Errorf("the log says %q:\n%s", said, p.output())
	}
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func rounded(all []time.Duration) (out []time.Duration) {
	for _, d := range all {
		out = append(out, ms(d))
	}
	return out
}

// rawSegments is the number of segments that a proxy reads concurrently.
const rawSegments = 4

// rawScan reads the whole table with only the SDK.
func (s *site) rawScan(t *testing.T) time.Duration {
	t.Helper()
	client, begun := dynamodb.NewFromConfig(s.Config), time.Now()
	var wg sync.WaitGroup
	var counts [rawSegments]int
	for i := range counts {
		wg.Go(func() {
			pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{
				TableName: aws.String("limits"), ConsistentRead: aws.Bool(true), Segment: aws.Int32(int32(i)), TotalSegments: aws.Int32(rawSegments),
			})
			for pages.HasMorePages() {
				page, err := pages.NextPage(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				counts[i] += len(page.Items)
			}
		})
	}
	wg.Wait()
	took, n := time.Since(begun), 0
	for _, count := range counts {
		n += count
	}
	if n < coldTenants {
		t.Errorf("only %d items were read", n)
	}
	return took
}

// ready starts a proxy, and returns the time from exec until it was ready.
func (s *site) ready(t *testing.T, args []string, environment ...string) (p *proxy, took time.Duration) {
	t.Helper()
	cmd := s.command(args...)
	cmd.Env = append(cmd.Env, environment...)
	begun := time.Now()
	p, found := launch(t, cmd, listening)
	p.addr, p.admin = found[1], found[2]
	eventually(t, "the proxy is ready", func() bool {
		resp, err := http.Get("http://" + p.admin + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p, time.Since(begun)
}

// tenantMemory prints the memory for each tenant: the difference between a proxy of many
// tenants and one of ten.
func tenantMemory(t *testing.T, s *site, many *proxy) {
	t.Helper()
	if err := dynamo.NewTable(s.Config, "few").Create(context.Background()); err != nil {
		t.Fatal(err)
	}
	const tenants, table = 10, "dynamodb://few"
	if _, stderr, code := s.limits("push", "--yes", "--actor", "ann", crowdOfTenants(t, tenants, "free"), table); code != 0 {
		t.Fatalf("push: %d\n%s", code, stderr)
	}
	args := s.serveArgs(filepath.Join(t.TempDir(), "snapshot"))
	args[slices.Index(args, tableURL)] = table
	few, _ := s.ready(t, append(args, "--pprof"))
	manyHeap, manyResident := many.memory()
	fewHeap, fewResident := few.memory()
	each := (manyHeap - fewHeap) / (coldTenants - tenants)
	t.Logf("memory: a heap of %.0f KiB with %d tenants, %.0f KiB with %d: %.0f bytes for each tenant (goal <= %.0f); resident %.0f and %.0f KiB",
		manyHeap/1024, coldTenants, fewHeap/1024, tenants, each, memoryGoal, manyResident/1024, fewResident/1024)
	if each > memoryGoal {
		t.Error("that is too much")
	}
}

// memory returns the bytes in the heap of a proxy with pprof after a collection, and its
// resident size.
func (p *proxy) memory() (heap, resident float64) {
	p.tb.Helper()
	for range 2 { // objects with finalizers are freed by the second one
		p.get("/debug/pprof/heap?gc=1")
	}
	metrics := p.get("/metrics")
	return gauge(p.tb, metrics, "go_memstats_heap_alloc_bytes"), gauge(p.tb, metrics, "process_resident_memory_bytes")
}

// gauge returns a metric without labels.
func gauge(tb testing.TB, metrics, name string) float64 {
	tb.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(metrics)
	if found == nil {
		tb.Fatalf("there is no %s", name)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		tb.Fatal(err)
	}
	return value
}
