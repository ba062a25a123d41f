package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/limitgate/limitgate/controlplane/table"
)

// readMost is how many records are read at once: they must be processed within a lease.
const readMost = 100

// Stream reads the changes of a table, shard by shard. Any number of goroutines may use
// it, each with shards of its own.
type Stream struct {
	tables *dynamodb.Client
	client *dynamodbstreams.Client
	name   string // of the table

	mu  sync.Mutex // guards arn
	arn string     // of the present stream of the table; a restore creates another one
}

// ErrNoStream is the error for a table without a stream.
var ErrNoStream = errors.New("the table has none")

// OpenStream returns the stream of a table. Its error wraps ErrNoStream if the table has none.
func OpenStream(ctx context.Context, config aws.Config, name string) (*Stream, error) {
	s := &Stream{tables: dynamodb.NewFromConfig(config), client: dynamodbstreams.NewFromConfig(config), name: name}
	return s, s.locate(ctx)
}

// locate finds the present stream of the table.
func (s *Stream) locate(ctx context.Context) error {
	out, err := s.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.name})
	if err != nil {
		return fmt.Errorf("open stream of %s: %w", s.name, Plain(s.tables, s.name, err))
	}
	if out.Table.LatestStreamArn == nil {
		return fmt.Errorf("open stream of %s: %w: enable one with new and old images: %s", s.name, ErrNoStream, enableStream(s.name))
	}
	if of := out.Table.StreamSpecification; of != nil && of.StreamViewType != "" && of.StreamViewType != dbtypes.StreamViewTypeNewAndOldImages {
		return fmt.Errorf("open stream of %s: it has %s: enable one with new and old images (%s)", s.name, of.StreamViewType, dbtypes.StreamViewTypeNewAndOldImages)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arn = *out.Table.LatestStreamArn
	return nil
}

// enableStream returns the command that gives a table the stream that limits need.
func enableStream(name string) string {
	return "aws dynamodb update-table --table-name " + name + " --stream-specification StreamEnabled=true,StreamViewType=" + string(dbtypes.StreamViewTypeNewAndOldImages)
}

// current returns the ARN of the stream.
func (s *Stream) current() *string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return aws.String(s.arn)
}

// Shard is a part of a stream. Records of an item are in one shard and its descendants.
type Shard struct {
	ID     string
	Parent string // its records come before, if it still exists
}

// Shards returns the shards of the present stream of the table.
func (s *Stream) Shards(ctx context.Context) (shards []Shard, err error) {
	if err := s.locate(ctx); err != nil {
		return nil, err
	}
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: s.current()}
	for {
		out, err := s.client.DescribeStream(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("describe stream: %w", err)
		}
		for _, sh := range out.StreamDescription.Shards {
			shards = append(shards, Shard{aws.ToString(sh.ShardId), aws.ToString(sh.ParentShardId)})
		}
		in.ExclusiveStartShardId = out.StreamDescription.LastEvaluatedShardId
		if in.ExclusiveStartShardId == nil {
			return shards, nil
		}
	}
}

// Start returns an iterator of a shard: after a sequence number, or at the beginning if
// that is empty, invalid or already trimmed.
func (s *Stream) Start(ctx context.Context, shard, after string) (iterator string, err error) {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: s.current(), ShardId: &shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
	if after != "" {
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &after
	}
	out, err := s.client.GetShardIterator(ctx, in)
	var trimmed *types.TrimmedDataAccessException
	var refused smithy.APIError
	unreadable := errors.As(err, &refused) && refused.ErrorCode() == "ValidationException" // an invalid sequence number, written by another program
	if (errors.As(err, &trimmed) || unreadable) && after != "" {
		return s.Start(ctx, shard, "")
	}
	if err != nil {
		return "", fmt.Errorf("start shard: %w", err)
	}
	return aws.ToString(out.ShardIterator), nil
}

// Read returns the next records, at most readMost, and the next iterator, empty at the
// end of a shard.
func (s *Stream) Read(ctx context.Context, iterator string) (records []table.Record, next string, err error) {
	out, err := s.client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: &iterator, Limit: aws.Int32(readMost)})
	if err != nil {
		return nil, "", fmt.Errorf("read shard: %w", err)
	}
	for _, r := range out.Records {
		if r.Dynamodb == nil {
			continue
		}
		record := table.Record{Sequence: aws.ToString(r.Dynamodb.SequenceNumber)}
		if image := r.Dynamodb.OldImage; image != nil {
			it := ItemOf(attributesOfStream(image))
			record.Before = &it
		}
		if image := r.Dynamodb.NewImage; image != nil {
			it := ItemOf(attributesOfStream(image))
			record.After = &it
		}
		records = append(records, record)
	}
	return records, aws.ToString(out.NextShardIterator), nil
}

// attributesOfStream converts attributes of a stream into those of a table: other types
// of the same shape.
func attributesOfStream(image map[string]types.AttributeValue) map[string]dbtypes.AttributeValue {
	out := map[string]dbtypes.AttributeValue{}
	for name, value := range image {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			out[name] = &dbtypes.AttributeValueMemberS{Value: v.Value}
		case *types.AttributeValueMemberN:
			out[name] = &dbtypes.AttributeValueMemberN{Value: v.Value}
		case *types.AttributeValueMemberBOOL:
			out[name] = &dbtypes.AttributeValueMemberBOOL{Value: v.Value}
		}
	}
	return out
}
