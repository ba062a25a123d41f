package awscheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
)

// probeName is the name of the tenant that is written, which is no real one.
const probeName = "limitgate-aws-check"

// probeActor is the actor of the probe's changes.
const probeActor = "aws-check"

func (c *checker) stream(ctx context.Context) (string, error) {
	client := dynamodb.NewFromConfig(c.AWS)
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &c.Table})
	if err != nil {
		return "", fmt.Errorf("describe table: %w", dynamo.Plain(client, c.Table, err))
	}
	s := out.Table.StreamSpecification
	if s == nil || !aws.ToBool(s.StreamEnabled) || s.StreamViewType != types.StreamViewTypeNewAndOldImages {
		return "", errors.New("enable a stream of new and old images: without it no change reaches proxies")
	}
	return "", nil
}

func (c *checker) backups(ctx context.Context) (string, error) {
	client := dynamodb.NewFromConfig(c.AWS)
	out, err := client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &c.Table})
	if err != nil {
		return "", fmt.Errorf("describe backups: %w", dynamo.Plain(client, c.Table, err))
	}
	recovery := out.ContinuousBackupsDescription.PointInTimeRecoveryDescription
	if recovery == nil || recovery.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
		return "", errors.New("enable point-in-time recovery: a deletion of the table is final without it")
	}
	return fmt.Sprintf("since %s", aws.ToTime(recovery.EarliestRestorableDateTime).Format(time.RFC3339)), nil
}

func (c *checker) expiry(ctx context.Context) (string, error) {
	client := dynamodb.NewFromConfig(c.AWS)
	out, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &c.Table})
	if err != nil {
		return "", fmt.Errorf("describe time to live: %w", dynamo.Plain(client, c.Table, err))
	}
	ttl := out.TimeToLiveDescription
	if ttl == nil || ttl.TimeToLiveStatus != types.TimeToLiveStatusEnabled || aws.ToString(ttl.AttributeName) != dynamo.ExpiryAttribute {
		return "", fmt.Errorf("enable time to live by %s: tombstones stay for ever without it", dynamo.ExpiryAttribute)
	}
	return "", nil
}

// conflict writes the probe, and then once more on its old version.
func (c *checker) conflict(ctx context.Context) (string, error) {
	items, err := c.limits.Scan(ctx)
	if err != nil {
		return "", err
	}
	plan := ""
	for _, it := range items {
		if table.IsPlan(it.Key) && it.IsLimits() && !it.Deleted {
			plan = table.Name(it.Key)
		}
		if it.Key == table.PrefixTenant+probeName {
			c.probe.Version = it.Version
		}
	}
	if err := needs(plan != "", "a table with a plan: push a limits file first"); err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]string{"plan": plan})
	if err != nil {
		return "", fmt.Errorf("write probe: %w", err)
	}
	it := table.Item{Key: table.PrefixTenant + probeName, Version: c.probe.Version, Actor: probeActor, At: time.Now().UTC(), Body: body}
	written, err := c.limits.Put(ctx, it)
	if err != nil {
		return "", err
	}
	c.probe = written
	it.Actor = "another"
	if _, err := c.limits.Put(ctx, it); !errors.Is(err, dynamo.ErrConflict) {
		return "", fmt.Errorf("a write on version %d after version %d was written: %w", it.Version, written.Version, errors.Join(errNotRefused, err))
	}
	return fmt.Sprintf("%s, version %d", written.Key, written.Version), nil
}

// errNotRefused is returned when AWS permits a request that it must refuse.
var errNotRefused = errors.New("not refused")

// lease has two processes take one lock.
func (c *checker) lease(ctx context.Context) (string, error) {
	if err := needs(c.Leases != "", "--leases"); err != nil {
		return "", err
	}
	first, second := dynamo.NewShardLocks(c.AWS, c.Leases, probeActor), dynamo.NewShardLocks(c.AWS, c.Leases, probeActor)
	until, _, err := first.Take(ctx, probeName)
	if err != nil || until.IsZero() {
		return "", errors.Join(err, errors.New("the lease cannot be taken, or another check runs"))
	}
	if until, _, err = second.Take(ctx, probeName); err != nil || !until.IsZero() {
		return "", errors.Join(err, errNotRefused)
	}
	return "", first.Release(ctx, probeName)
}
