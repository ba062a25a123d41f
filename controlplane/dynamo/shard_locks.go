package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// leaseTime is how long a shard lock lasts without renewal: after a sudden death no
	// control plane processes the shard's changes for so long.
	leaseTime = 10 * time.Second
	// leaseAhead is how far ahead the end of a lock may be: a later end was written by
	// a wrong clock.
	leaseAhead = time.Minute
	// leaseRenewal is how long before its end a lock is renewed.
	leaseRenewal = leaseTime / 3
)

// The attributes of a lock, beside attrKey.
const (
	attrOwner    = "holder"
	attrUntil    = "held_until" // ms since the epoch
	attrSequence = "told_until"
)

// ShardLocks distributes the shards of a stream among control planes, by locks in a
// table of their own, and stores how far each shard was processed. One goroutine may
// use it.
type ShardLocks struct {
	client *dynamodb.Client
	table  string
	use    string // the purpose for which the shards are read
	owner  string // a random id of this process
	now    func() time.Time
}

// NewShardLocks returns the locks of this process in a table. Each use of the changes
// has locks of its own there.
func NewShardLocks(config aws.Config, table, use string) *ShardLocks {
	return &ShardLocks{dynamodb.NewFromConfig(config), table, use, rand.Text(), time.Now}
}

// key returns the key of the lock of a shard.
func (l *ShardLocks) key(shard string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrKey: text(l.use + ":" + shard)}
}

// Take takes or renews the lock of a shard, and returns its end. If another process has
// the lock, until is zero. After is the sequence number after which to continue, or "".
func (l *ShardLocks) Take(ctx context.Context, shard string) (until time.Time, after string, err error) {
	now := l.now()
	until = now.Add(leaseTime)
	out, err := l.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: l.key(shard),
		UpdateExpression:         aws.String("SET #o = :me, #u = :until"),
		ConditionExpression:      aws.String("attribute_not_exists(#o) OR attribute_not_exists(#u) OR #o = :me OR #u < :now OR #u > :ahead"),
		ExpressionAttributeNames: map[string]string{"#o": attrOwner, "#u": attrUntil},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":me": text(l.owner), ":until": number(until.UnixMilli()), ":now": number(now.UnixMilli()), ":ahead": number(now.Add(leaseAhead).UnixMilli()),
		},
		ReturnValues: types.ReturnValueAllNew,
	})
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return time.Time{}, "", nil
	}
	if err != nil {
		return time.Time{}, "", fmt.Errorf("take lease in %s: %w", l.table, Plain(l.client, l.table, err))
	}
	if v, ok := out.Attributes[attrSequence].(*types.AttributeValueMemberS); ok {
		after = v.Value
	}
	return until, after, nil
}

// Note stores how far a shard was processed, if this process still has the lock.
func (l *ShardLocks) Note(ctx context.Context, shard, sequence string) error {
	_, err := l.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: l.key(shard),
		UpdateExpression:          aws.String("SET #s = :sequence"),
		ConditionExpression:       aws.String("#o = :me"),
		ExpressionAttributeNames:  map[string]string{"#o": attrOwner, "#s": attrSequence},
		ExpressionAttributeValues: map[string]types.AttributeValue{":me": text(l.owner), ":sequence": text(sequence)},
	})
	var refused *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &refused) { // otherwise the next owner processes the change again
		return fmt.Errorf("note lease: %w", err)
	}
	return nil
}

// Release releases the lock of a shard. Without the table there is none.
func (l *ShardLocks) Release(ctx context.Context, shard string) error {
	_, err := l.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: l.key(shard),
		UpdateExpression:          aws.String("REMOVE #o, #u"),
		ConditionExpression:       aws.String("#o = :me"),
		ExpressionAttributeNames:  map[string]string{"#o": attrOwner, "#u": attrUntil},
		ExpressionAttributeValues: map[string]types.AttributeValue{":me": text(l.owner)},
	})
	var refused *types.ConditionalCheckFailedException
	if err == nil || errors.As(err, &refused) || isNoTable(err) {
		return nil
	}
	return fmt.Errorf("release lease in %s: %w", l.table, err)
}
