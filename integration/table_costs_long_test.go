//go:build long

package integration

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const (
	costBurst = 300
	costQuiet = 2 * time.Second // after so long without a message no more arrive
)

// TestLongTableCosts counts the calls for a burst of writes: those that publish, for all
// proxies together, and those that receive, for each.
func TestLongTableCosts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	m := startMeter(s)
	s.env = m.environment()
	s.push(tableLimits(t, ""), "ann")
	plane := s.controlPlane()
	var all []*proxy
	for range proxies {
		all = append(all, s.serve(filepath.Join(t.TempDir(), "snapshot")))
	}
	enforce(t, "nobody", 100, all...)
	w := newTenantWriter(s.table)
	const most = (costBurst+9)/10 + 1
	burst := func(what, prefix string, before, after func()) (batches int) {
		m.reset()
		before()
		w.burst(t, prefix, costBurst, burstWriters, func(string, int64) {})
		after()
		batches, received, messages := m.awaitCosts(t)
		t.Logf("%s of %d writes: %d calls that publish items, and for each proxy %v that receive %v messages", what, costBurst, batches, received, messages)
		for _, n := range received {
			if n > 2*most { // an emulator returns the messages that it has
				t.Errorf("%s: a proxy has received in %d calls", what, n)
			}
		}
		return batches
	}
	nothing := func() {}
	burst("a burst", "live", nothing, nothing)
	// Records that were written while the stream was not read arrive at once.
	stop, cont := func() { signal(t, plane, syscall.SIGSTOP) }, func() { signal(t, plane, syscall.SIGCONT) }
	if got := burst("a burst at once", "held", stop, cont); got > most {
		t.Errorf("%d writes cost %d calls that publish, more than %d", costBurst, got, most)
	}
}

// awaitCosts waits until all of a burst was published, and no more messages arrive. An
// emulator loses some of the messages that arrive while others are deleted.
func (m *meter) awaitCosts(t *testing.T) (batches int, received, messages []int) {
	t.Helper()
	eventually(t, "all is published", func() bool { return m.publishedItems() == costBurst })
	last, since := 0, time.Now()
	eventually(t, "all is received", func() bool {
		batches, received, messages = m.costs()
		sum := 0
		for _, n := range messages {
			sum += n
		}
		if sum != last {
			last, since = sum, time.Now()
		}
		return time.Since(since) > costQuiet
	})
	return batches, received, messages
}

func signal(t *testing.T, p *proxy, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// TestLongTableReaders: with two control planes that audit changes, one of which is
// killed, a shard never has more than the two concurrent readers that are allowed: one
// that publishes and one that audits.
func TestLongTableReaders(t *testing.T) {
	t.Parallel()
	s := newTableScene(t, 0, nil)
	m := startMeter(s.site)
	s.env = m.environment()
	bucket := "limits-audit"
	if _, err := s3.NewFromConfig(s.Config, func(o *s3.Options) { o.UsePathStyle = true }).CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket: &bucket, ObjectLockEnabledForBucket: new(true),
		CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(s.Config.Region)},
	}); err != nil {
		t.Fatal(err)
	}
	s.planeFlags = []string{"--audit-bucket", bucket}
	s.planes = []*proxy{s.plane(), s.plane()}
	writing := s.startWriting(t.Context())
	pause(5 * time.Second)
	before, _ := m.readers()
	_ = s.planes[0].stop(syscall.SIGKILL)
	_ = s.planes[1].stop(syscall.SIGTERM) // one of the two holds a lock that it releases
	s.planes = []*proxy{s.plane(), s.plane()}
	eventually(t, "others read", func() bool {
		now, _ := m.readers()
		return now >= before+2
	})
	pause(2 * time.Second)
	writing.end()
	s.awaitAgreement(t, s.proxies...)
	all, most := m.readers()
	t.Logf("%d readers of the shard, one after the other, and at most %d at a time:\n%s", all, most, m.described())
	if most != 2 || before != 2 {
		t.Errorf("%d readers at first, at most %d at a time", before, most)
	}
}
