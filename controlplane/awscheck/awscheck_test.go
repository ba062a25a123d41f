package awscheck

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"go.uber.org/goleak"

	"github.com/limitgate/limitgate/controlplane"
	"github.com/limitgate/limitgate/controlplane/audit"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(awstest.Sharing{M: m}) }

// results makes the checks, and returns the results by their names.
func results(t *testing.T, o Options) map[string]Result {
	t.Helper()
	found := map[string]Result{}
	failed := Run(t.Context(), o, func(r Result) {
		found[r.Check] = r
		t.Logf("%+v", r)
	})
	n := 0
	for _, r := range found {
		if !r.Held && !r.LeftOut {
			n++
		}
	}
	if n != failed || len(found) != len(Names()) {
		t.Errorf("%d of %d did not hold, and Run says %d", n, len(found), failed)
	}
	return found
}

// TestChecks: on an emulator, which enforces neither policies of buckets nor Object
// Lock, those checks fail, and all others succeed. Only a tombstone is left.
func TestChecks(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	limits, leases := dynamo.NewTable(a.Config, "check-limits"), dynamo.NewTable(a.Config, "check-leases")
	for _, made := range []*dynamo.Table{limits, leases} {
		if err := made.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	topic := a.Topic(t, "check")
	enable(t, a.Config)
	for key, body := range map[string]string{"SHARED": `{"version":1}`, "PLAN#free": `[]`} {
		if _, err := limits.Put(t.Context(), table.Item{Key: key, Body: []byte(body), Actor: "ann", At: testTime}); err != nil {
			t.Fatal(err)
		}
	}
	plane(t, a.Config, limits, topic)
	found := results(t, Options{AWS: a.Config, Table: "check-limits", Topic: topic, Leases: "check-leases", Bucket: "check-audit"})
	for name, r := range found {
		wanted := !strings.Contains(name, "is not written again") && !strings.Contains(name, "is not deleted")
		if r.Held != wanted || r.LeftOut {
			t.Errorf("%+v", r)
		}
	}
	if n := len(a.Queues(t)); n != 0 {
		t.Errorf("%d queues are left", n)
	}
	if it, ok, err := limits.Get(t.Context(), "TENANT#"+probeName); err != nil || !ok || !it.Deleted {
		t.Errorf("the tenant is left: %+v, %v", it, err)
	}
}

// TestNothingThere: without a table all checks fail, and without names they are
// skipped.
func TestNothingThere(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	for name, r := range results(t, Options{AWS: a.Config, Table: "not-there"}) {
		if r.Held {
			t.Errorf("%s holds: %+v", name, r)
		}
	}
}

// enable enables the features that the checks require.
func enable(t *testing.T, config aws.Config) {
	t.Helper()
	client, name := dynamodb.NewFromConfig(config), aws.String("check-limits")
	_, err := client.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{
		TableName: name, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: name, TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: aws.String(dynamo.ExpiryAttribute)},
	})
	if err != nil {
		t.Fatal(err)
	}
	bucket := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true })
	if _, err := bucket.CreateBucket(t.Context(), &s3.CreateBucketInput{
		Bucket: aws.String("check-audit"), ObjectLockEnabledForBucket: aws.Bool(true),
		CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(config.Region)},
	}); err != nil {
		t.Fatal(err)
	}
}

// plane runs a control plane until the test ends.
func plane(t *testing.T, config aws.Config, limits *dynamo.Table, topic string) {
	t.Helper()
	stream, err := dynamo.OpenStream(t.Context(), config, "check-limits")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	changes := func(use string) *dynamo.Changes {
		return dynamo.NewChanges(stream, dynamo.NewShardLocks(config, "check-leases", use), log)
	}
	publish := dynamo.NewTopic(config, topic)
	relay := controlplane.Relay{Stream: changes("relay"), Handler: &controlplane.Handler{Publish: publish, Items: limits, Log: log}, Log: log}
	digests := controlplane.Digests{Table: limits, Publish: publish, HoldsLock: func(context.Context) (bool, error) { return true, nil }, Log: log}
	writer := audit.Writer{Records: changes("audit"), Archive: audit.NewBucket(config, "check-audit"), Log: log}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	for _, run := range []func(context.Context) error{relay.Run, digests.Run, writer.Run} {
		wg.Go(func() { _ = run(ctx) })
	}
}

// testTime is when the items of the tests were written.
var testTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
