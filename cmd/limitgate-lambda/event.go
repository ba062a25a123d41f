package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
)

// handle passes an event to a handler: an event with records comes from a stream, any
// other from a schedule. For records the response names the first one that the handler
// did not process; the event source mapping continues from there. On an error AWS would
// send all records again.
func handle(ctx context.Context, h handler, body json.RawMessage, log *slog.Logger) (response events.DynamoDBEventResponse, err error) {
	var event events.DynamoDBEvent
	if err := json.Unmarshal(body, &event); err != nil {
		return response, fmt.Errorf("read event: %w", err)
	}
	response.BatchItemFailures = []events.DynamoDBBatchItemFailure{}
	if len(event.Records) == 0 {
		return response, h.tick(ctx)
	}
	records := recordsOf(&event)
	done, err := h.records(ctx, records)
	if err != nil {
		log.Error("failed to process changes, AWS sends them again from here on", "sequence", records[done].Sequence, "done", done, "of", len(records), "error", err)
		response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: records[done].Sequence})
	}
	return response, nil
}

// recordsOf returns the changes in an event.
func recordsOf(event *events.DynamoDBEvent) []table.Record {
	records := make([]table.Record, len(event.Records))
	for i := range event.Records {
		change := &event.Records[i].Change
		records[i] = table.Record{Sequence: change.SequenceNumber, Before: itemOf(change.OldImage), After: itemOf(change.NewImage)}
	}
	return records
}

// itemOf decodes an image. It returns nil for an empty one.
func itemOf(image map[string]events.DynamoDBAttributeValue) *table.Item {
	if len(image) == 0 {
		return nil
	}
	attributes := map[string]types.AttributeValue{}
	for name, value := range image {
		switch value.DataType() {
		case events.DataTypeString:
			attributes[name] = &types.AttributeValueMemberS{Value: value.String()}
		case events.DataTypeNumber:
			attributes[name] = &types.AttributeValueMemberN{Value: value.Number()}
		case events.DataTypeBoolean:
			attributes[name] = &types.AttributeValueMemberBOOL{Value: value.Boolean()}
		default: // no attribute of an item has another type
		}
	}
	it := dynamo.ItemOf(attributes)
	return &it
}
