//go:build long

package integration

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const awayTime = 30 * time.Second

// hangs is a fault in which AWS accepts connections and never replies, not even later to
// calls made during the fault.
func hangs() tableFault {
	var m *meter
	return tableFault{
		name: "AWS hangs for 30 s", lasts: awayTime, beside: true,
		furnish: func(_ *testing.T, s *tableScene) {
			m = startMeter(s.site)
			s.env = append(s.env, m.environment()...)
		},
		make: func(t *testing.T, s *tableScene) {
			m.mute()
			s.signal(t, syscall.SIGSTOP)
		},
		heal: func(t *testing.T, s *tableScene) {
			m.unmute()
			s.signal(t, syscall.SIGCONT)
		},
	}
}

// signal sends a signal to the emulator.
func (s *tableScene) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.PID(), sig); err != nil {
		t.Fatal(err)
	}
}

// rawItems reads all items with their raw attributes.
func (s *tableScene) rawItems(t *testing.T) (items []map[string]types.AttributeValue) {
	t.Helper()
	name := "limits"
	pages := dynamodb.NewScanPaginator(dynamodb.NewFromConfig(s.Config), &dynamodb.ScanInput{TableName: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

// stream returns the ARN of the table's stream.
func (s *tableScene) stream(t *testing.T) string {
	t.Helper()
	name := "limits"
	out, err := dynamodb.NewFromConfig(s.Config).DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	return *out.Table.LatestStreamArn
}

// putRaw writes an item by hand.
func (s *tableScene) putRaw(t *testing.T, item map[string]types.AttributeValue) {
	t.Helper()
	name := "limits"
	if _, err := dynamodb.NewFromConfig(s.Config).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// deleteRaw deletes an item by hand.
func (s *tableScene) deleteRaw(t *testing.T, key string) {
	t.Helper()
	name := "limits"
	if _, err := dynamodb.NewFromConfig(s.Config).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &name, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}},
	}); err != nil {
		t.Fatal(err)
	}
}

// restored is a fault in which AWS is killed, and returns with its table restored: with
// another stream, queues without messages, and no locks.
func restored() tableFault {
	var (
		backup []map[string]types.AttributeValue
		m      *meter
	)
	return tableFault{
		name: "AWS dies, is restored after 30 s", lasts: awayTime, beside: true,
		furnish: func(_ *testing.T, s *tableScene) {
			m = startMeter(s.site)
			s.planeEnv = m.environment
		},
		make: func(t *testing.T, s *tableScene) {
			s.writing.mu.Lock() // writes after the backup would be lost
			defer s.writing.mu.Unlock()
			backup = s.rawItems(t)
			m.forget(s.stream(t))
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
		},
		heal: func(t *testing.T, s *tableScene) {
			s.writing.mu.Lock()
			defer s.writing.mu.Unlock()
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			s.furnish()
			for _, item := range backup {
				s.putRaw(t, item)
			}
			s.relay.furnish(t)
		},
	}
}

// burst writes n more tenants in the background, and returns a function that waits for
// its end.
func (s *tableScene) burst(t *testing.T, prefix string, n int) (wait func()) {
	var wg sync.WaitGroup
	for i := range n {
		s.tenants = append(s.tenants, fmt.Sprint(prefix, i))
	}
	wg.Go(func() { s.writer.burst(t, prefix, n, 2, func(string, int64) {}) })
	return wg.Wait
}

// latecomers are proxies that start in the middle of a burst, one with a queue that was
// created for it and one that creates its own.
var latecomers = tableFault{
	name: "two proxies start in a burst",
	make: func(t *testing.T, s *tableScene) {
		wait := s.burst(t, "burst", 200)
		defer wait()
		s.proxies = append(s.proxies, s.follow(filepath.Join(t.TempDir(), "snapshot"), s.relay.add(t)), s.serve(filepath.Join(t.TempDir(), "snapshot")))
	},
	heal: func(*testing.T, *tableScene) {},
}

// killed is a fault with two control planes, of which the publishing one is killed in a
// burst.
func killed() tableFault {
	var meters []*meter
	f := tableFault{name: "one of two control planes killed in a burst", planes: 2, heal: func(*testing.T, *tableScene) {}}
	f.furnish = func(_ *testing.T, s *tableScene) {
		meters = nil
		s.planeEnv = func() []string {
			m := startMeter(s.site)
			meters = append(meters, m)
			return m.environment()
		}
	}
	f.make = func(t *testing.T, s *tableScene) {
		before := []int{meters[0].batchesPublished(), meters[1].batchesPublished()}
		wait := s.burst(t, "burst", 200)
		teller := -1
		eventually(t, "one publishes the burst", func() bool {
			for i, m := range meters {
				if m.batchesPublished() > before[i]+5 {
					teller = i
				}
			}
			return teller >= 0
		})
		_ = s.planes[teller].stop(syscall.SIGKILL)
		wait()
	}
	f.also = func(t *testing.T, s *tableScene, _ *tableOutcome) {
		missing := 0
		for _, it := range s.writer.written() {
			if !meters[0].wasPublished(&it) && !meters[1].wasPublished(&it) {
				missing++
			}
		}
		if missing > 0 {
			t.Errorf("of %d changes %d were never published", len(s.writer.written()), missing)
		}
		for i, m := range meters {
			if m.batchesPublished() == 0 {
				t.Errorf("control plane %d has published nothing", i)
			}
		}
	}
	return f
}

// TestLongTableFaults is the whole suite of limits as data.
func TestLongTableFaults(t *testing.T) {
	runTableFaults(t, hangs(), restored(), disturbed, poison, halfWritten, killed(), latecomers)
}
