package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.uber.org/goleak"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awstest"
)

// late bounds the wait for an event.
const late = 20 * time.Second

// TestMain checks at the end that no goroutine remains.
func TestMain(m *testing.M) { goleak.VerifyTestMain(awstest.Sharing{M: m}) }

// newTable creates an empty table.
func newTable(t *testing.T, a *awstest.AWS) *Table {
	t.Helper()
	limits := NewTable(a.Config, "limits")
	if err := limits.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return limits
}

// item returns an item as it is read.
func item(key string, version int64, body string) table.Item {
	return table.Item{
		Key: key, Version: version, Body: json.RawMessage(body), Actor: "ann",
		At: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC),
	}
}

// tombstone returns a deleted item.
func tombstone(key string, version int64) table.Item {
	it := item(key, version, "")
	it.Body, it.Deleted = nil, true
	return it
}

// put writes an item as the next version of its argument.
func put(t *testing.T, limits *Table, it table.Item) table.Item {
	t.Helper()
	written, err := limits.Put(t.Context(), it)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// raw reads an item's attributes without Table.
func raw(t *testing.T, a *awstest.AWS, key string) map[string]types.AttributeValue {
	t.Helper()
	out, err := dynamodb.NewFromConfig(a.Config).GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("limits"), Key: map[string]types.AttributeValue{attrKey: text(key)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// writeByHand writes an item without Table.
func writeByHand(t *testing.T, a *awstest.AWS, attributes map[string]types.AttributeValue) {
	t.Helper()
	_, err := dynamodb.NewFromConfig(a.Config).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("limits"), Item: attributes})
	if err != nil {
		t.Fatal(err)
	}
}

// deleteByHand deletes an item without a tombstone, or the tombstone.
func deleteByHand(t *testing.T, a *awstest.AWS, key string) {
	t.Helper()
	_, err := dynamodb.NewFromConfig(a.Config).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String("limits"), Key: map[string]types.AttributeValue{attrKey: text(key)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// collect calls next until the results are enough, or fails after late.
func collect[T any](t *testing.T, what string, next func(context.Context) ([]T, error), enough func([]T) bool) (all []T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), late)
	defer cancel()
	for !enough(all) {
		more, err := next(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%s: not within %s, only %v", what, late, all)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, more...)
	}
	return all
}

// atLeast makes collect return n or more.
func atLeast[T any](n int) func([]T) bool { return func(all []T) bool { return len(all) >= n } }

// names returns the keys and versions of items.
func names(items []table.Item) (all []string) {
	for _, it := range items {
		all = append(all, fmt.Sprintf("%s/%d", it.Key, it.Version))
	}
	return all
}
