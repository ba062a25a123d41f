package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// mappingPause is the pause before reading a stream again that had no new records, and
// before invoking a function again that has failed.
const mappingPause = 20 * time.Millisecond

// mapping is an event source mapping of AWS Lambda from the stream of a table to a
// function, with ReportBatchItemFailures and BisectBatchOnFunctionError.
type mapping struct {
	*function
	stream  *dynamodbstreams.Client
	queues  *sqs.Client
	arn     *string
	shard   *string
	batch   int32  // BatchSize
	retries int    // MaximumRetryAttempts
	onward  string // the URL of the queue that is its on-failure destination

	mu     sync.Mutex // guards the fields below
	events [][]byte   // all events that were delivered
	parts  int        // of them those that were processed in part
	errs   int        // of them those that ended with an error
	done   int        // records that are processed or given up
	lost   []string   // messages that could not be sent to the queue
}

// mapStream starts to deliver the changes of a table to a function.
func (s *site) mapStream(f *function, table string, batch int32, retries int, onward string) *mapping {
	s.tb.Helper()
	m := &mapping{function: f, stream: dynamodbstreams.NewFromConfig(s.Config), queues: sqs.NewFromConfig(s.Config), batch: batch, retries: retries, onward: onward}
	ctx := s.tb.Context()
	described, err := dynamodb.NewFromConfig(s.Config).DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		s.tb.Fatal(err)
	}
	m.arn = described.Table.LatestStreamArn
	stream, err := m.stream.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: m.arn})
	if err != nil || len(stream.StreamDescription.Shards) != 1 {
		s.tb.Fatalf("the stream of %s: %v", table, err)
	}
	m.shard = stream.StreamDescription.Shards[0].ShardId
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { m.run(ctx) })
	s.tb.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return m
}

// run reads the stream until ctx ends. After a failure it continues behind the last
// processed record.
func (m *mapping) run(ctx context.Context) {
	done := ""
	for ctx.Err() == nil {
		in := &dynamodbstreams.GetShardIteratorInput{StreamArn: m.arn, ShardId: m.shard, ShardIteratorType: types.ShardIteratorTypeTrimHorizon}
		if done != "" {
			in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &done
		}
		if at, err := m.stream.GetShardIterator(ctx, in); err == nil {
			done = m.read(ctx, at.ShardIterator, done)
		}
		m.wait(ctx)
	}
}

// read delivers the records behind an iterator, and returns the last processed one.
func (m *mapping) read(ctx context.Context, iterator *string, done string) string {
	for ctx.Err() == nil && iterator != nil {
		page, err := m.stream.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: iterator, Limit: &m.batch})
		if err != nil {
			return done
		}
		iterator = page.NextShardIterator
		if len(page.Records) == 0 {
			m.wait(ctx)
			continue
		}
		m.deliver(ctx, page.Records, 0)
		done = sequence(&page.Records[len(page.Records)-1])
	}
	return done
}

func (m *mapping) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(mappingPause):
	}
}

func sequence(r *types.Record) string { return aws.ToString(r.Dynamodb.SequenceNumber) }

// deliver delivers records until all are processed or given up, when some were tried
// already. A batch that is split, by an error or at the position that the function
// returned, does not use up another attempt, as AWS documents for a bisected batch.
func (m *mapping) deliver(ctx context.Context, records []types.Record, tried int) {
	for calls := 1; len(records) > 0 && ctx.Err() == nil; calls++ {
		done, err := m.deliverOnce(ctx, records)
		if ctx.Err() != nil {
			return
		}
		records = records[done:]
		half := len(records) / 2
		switch {
		case err != nil && half > 0:
			m.deliver(ctx, records[:half], tried)
			records = records[half:]
		case done == 0:
			if tried++; tried > m.retries {
				m.giveUp(ctx, records, calls)
				return
			}
		}
		if len(records) > 0 {
			m.wait(ctx)
		}
	}
}

// deliverOnce delivers records once, and returns how many of them are processed.
func (m *mapping) deliverOnce(ctx context.Context, records []types.Record) (done int, err error) {
	event, err := eventOf(*m.arn, records)
	if err != nil {
		m.tb.Error(err)
		return 0, err
	}
	body, err := m.invoke(ctx, event)
	if err == nil {
		done, err = doneWith(body, records)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, event)
	m.done += done
	switch {
	case err != nil:
		m.errs++
	case done < len(records):
		m.parts++
	}
	return done, err
}

// doneWith returns how many records are processed according to a response: those before
// the first failure.
func doneWith(body []byte, records []types.Record) (int, error) {
	var response *struct {
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return 0, fmt.Errorf("read response: %w", err)
	}
	done := len(records)
	if response == nil {
		return done, nil
	}
	for _, failed := range response.BatchItemFailures {
		i := slices.IndexFunc(records, func(r types.Record) bool { return sequence(&r) == failed.ItemIdentifier })
		if i < 0 {
			return 0, fmt.Errorf("no record has failed that is called %q", failed.ItemIdentifier)
		}
		done = min(done, i)
	}
	return done, nil
}

// giveUp sends the position of records to the on-failure destination, and continues
// behind them.
func (m *mapping) giveUp(ctx context.Context, records []types.Record, calls int) {
	first, last := &records[0], &records[len(records)-1]
	body, err := json.Marshal(map[string]any{
		"requestContext": map[string]any{
			"requestId": "316aa6d0-8154-4d42-9af7-85d5f4a6bc81", "functionArn": "arn:aws:lambda:eu-central-1:123456789012:function:limitgate",
			"condition": "RetryAttemptsExhausted", "approximateInvokeCount": calls,
		},
		"responseContext": map[string]any{"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
		"version":         "1.0", "timestamp": time.Now().UTC(),
		"DDBStreamBatchInfo": batchInfo{
			*m.shard, sequence(first), sequence(last), aws.ToTime(first.Dynamodb.ApproximateCreationDateTime), aws.ToTime(last.Dynamodb.ApproximateCreationDateTime),
			len(records), *m.arn,
		},
	})
	if err == nil {
		_, err = m.queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &m.onward, MessageBody: aws.String(string(body))})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += len(records)
	if err != nil {
		m.lost = append(m.lost, fmt.Sprintf("%s: %v", sequence(first), err))
	}
}

// await waits until n records are processed or given up.
func (m *mapping) await(n int) {
	m.tb.Helper()
	eventually(m.tb, fmt.Sprintf("%d changes are done with", n), func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.done >= n
	})
}

// batchInfo is the position of records that were given up.
type batchInfo struct {
	ShardID                         string    `json:"shardId"`
	StartSequenceNumber             string    `json:"startSequenceNumber"`
	EndSequenceNumber               string    `json:"endSequenceNumber"`
	ApproximateArrivalOfFirstRecord time.Time `json:"approximateArrivalOfFirstRecord"`
	ApproximateArrivalOfLastRecord  time.Time `json:"approximateArrivalOfLastRecord"`
	BatchSize                       int       `json:"batchSize"`
	StreamArn                       string    `json:"streamArn"`
}

// deliveredEvents returns the delivered events, how many of them were processed in part, and
// how many ended with an error.
func (m *mapping) deliveredEvents() (events [][]byte, parts, errs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lost) > 0 {
		m.tb.Errorf("records that were given up are lost: %s", strings.Join(m.lost, ", "))
	}
	return slices.Clone(m.events), m.parts, m.errs
}

// eventOf returns the event of records.
func eventOf(arn string, records []types.Record) ([]byte, error) {
	encoded := make([]map[string]any, len(records))
	for i := range records {
		r := &records[i]
		change := map[string]any{
			"SequenceNumber": sequence(r), "SizeBytes": aws.ToInt64(r.Dynamodb.SizeBytes), "StreamViewType": r.Dynamodb.StreamViewType,
		}
		if at := r.Dynamodb.ApproximateCreationDateTime; at != nil {
			change["ApproximateCreationDateTime"] = at.Unix()
		}
		for name, image := range map[string]map[string]types.AttributeValue{"Keys": r.Dynamodb.Keys, "OldImage": r.Dynamodb.OldImage, "NewImage": r.Dynamodb.NewImage} {
			if image == nil {
				continue
			}
			written, err := imageJSON(image)
			if err != nil {
				return nil, err
			}
			change[name] = written
		}
		encoded[i] = map[string]any{
			"eventID": aws.ToString(r.EventID), "eventName": r.EventName, "eventVersion": aws.ToString(r.EventVersion), "eventSource": "aws:dynamodb",
			"awsRegion": aws.ToString(r.AwsRegion), "dynamodb": change, "eventSourceARN": arn,
		}
		if who := r.UserIdentity; who != nil {
			encoded[i]["userIdentity"] = map[string]string{"type": aws.ToString(who.Type), "principalId": aws.ToString(who.PrincipalId)}
		}
	}
	return json.Marshal(map[string]any{"Records": encoded})
}

func imageJSON(image map[string]types.AttributeValue) (map[string]any, error) {
	written := map[string]any{}
	var errs []error
	for name, value := range image {
		v, err := attributeJSON(value)
		written[name] = v
		errs = append(errs, err)
	}
	return written, errors.Join(errs...)
}

// attributeJSON encodes an attribute as events have it.
func attributeJSON(value types.AttributeValue) (map[string]any, error) {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}, nil
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}, nil
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}, nil
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}, nil
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}, nil
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": v.Value}, nil
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": v.Value}, nil
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": v.Value}, nil
	case *types.AttributeValueMemberM:
		m, err := imageJSON(v.Value)
		return map[string]any{"M": m}, err
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		var errs []error
		for i, element := range v.Value {
			written, err := attributeJSON(element)
			list[i] = written
			errs = append(errs, err)
		}
		return map[string]any{"L": list}, errors.Join(errs...)
	}
	return nil, fmt.Errorf("an attribute is a %T", value)
}
