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
	// leaseTime is how long a shard is somebody's who says nothing more of it: so long
	// nobody tells of its changes after a sudden death.
	leaseTime = 10 * time.Second
	// leaseAhead is how far ahead its end may be: what is further was written by a clock
	// that is wrong.
	leaseAhead = time.Minute
	// leaseRenewal is how long before its end it is prolonged.
	leaseRenewal = leaseTime / 3
)

// The attributes of a lease, beside attrKey.
const (
	attrOwner    = "holder"
	attrUntil    = "held_until" // ms since the epoch
	attrSequence = "told_until"
)

// ShardLocks share the shards of a stream between control planes, in a table of their own, and
// remember how far each was told. One goroutine may use them.
type ShardLocks struct {
	client *dynamodb.Client
	table  string
	use    string // what the shards are read for
	owner  string // this process, by chance
	now    func() time.Time
}

// NewShardLocks returns the leases of this process in a table. Each use of the changes has
// leases of its own there.
func NewShardLocks(config aws.Config, table, use string) *ShardLocks {
	return &ShardLocks{dynamodb.NewFromConfig(config), table, use, rand.Text(), time.Now}
}

// key returns the key of the lease of a shard.
func (l *ShardLocks) key(shard string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrKey: text(l.use + ":" + shard)}
}

// Take takes or prolongs the lease of a shard, until the instant that it returns, unless
// somebody else has it: then that is zero. It returns behind which sequence number to go
// on, or "".
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
		return time.Time{}, "", fmt.Errorf("take lease in %s: %w", l.table, plain(err))
	}
	if v, ok := out.Attributes[attrSequence].(*types.AttributeValueMemberS); ok {
		after = v.Value
	}
	return until, after, nil
}

// Note remembers how far a shard was told, if it is still this process's.
func (l *ShardLocks) Note(ctx context.Context, shard, sequence string) error {
	_, err := l.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: l.key(shard),
		UpdateExpression:          aws.String("SET #s = :sequence"),
		ConditionExpression:       aws.String("#o = :me"),
		ExpressionAttributeNames:  map[string]string{"#o": attrOwner, "#s": attrSequence},
		ExpressionAttributeValues: map[string]types.AttributeValue{":me": text(l.owner), ":sequence": text(sequence)},
	})
	var refused *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &refused) { // else the next owner tells it again
		return fmt.Errorf("note lease: %w", err)
	}
	return nil
}

// Release gives a shard to whoever comes next.
func (l *ShardLocks) Release(ctx context.Context, shard string) error {
	_, err := l.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: l.key(shard),
		UpdateExpression:          aws.String("REMOVE #o, #u"),
		ConditionExpression:       aws.String("#o = :me"),
		ExpressionAttributeNames:  map[string]string{"#o": attrOwner, "#u": attrUntil},
		ExpressionAttributeValues: map[string]types.AttributeValue{":me": text(l.owner)},
	})
	var refused *types.ConditionalCheckFailedException
	if err != nil && !errors.As(err, &refused) {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}
