// Package dynamo keeps limits in Amazon DynamoDB, item by item, and tells of changes by
// Amazon SNS and SQS. It promises that a write is made on the version that was read, or
// not at all. Its clients come from aws-sdk-go-v2, with its environment and files.
package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/limitgate/limitgate/controlplane/table"
)

// The attributes of an item.
const (
	attrKey     = "pk"
	attrBody    = "body"
	attrVersion = "version"
	attrActor   = "updated_by"
	attrAt      = "updated_at"
	attrDeleted = "deleted"
	attrExpires = ExpiryAttribute
)

// ExpiryAttribute is the attribute by which DynamoDB's time to live removes tombstones.
const ExpiryAttribute = "expires_at"

// scanSegments is into how many parts a table is read at the same time.
const scanSegments = 4

// maxYear is the last year of which an instant can be told as JSON; nor can one with a zone
// that is a day away, which may stand in a table.
const maxYear = 9999

// ErrConflict is returned for a write on a version that is not the newest any more.
var ErrConflict = errors.New("somebody else has changed it meanwhile")

// ErrLastVersion is returned for a write over an item of the largest version, which only a write
// by hand can have given it.
var ErrLastVersion = errors.New("its version is the largest that there is, as only a write by hand can have made it: delete the item by hand, and write it again when the control plane has restored it")

// errNoTable is of a name that no table has.
var errNoTable = errors.New("there is no such table in this region")

// plain returns an error of DynamoDB, in a sentence of ours where its own says little.
func plain(err error) error {
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return errNoTable
	}
	return err
}

// Table is a DynamoDB table of limits. Any number of goroutines may use it.
type Table struct {
	client *dynamodb.Client
	name   string
}

// NewTable returns the table with a name.
func NewTable(config aws.Config, name string) *Table {
	return &Table{dynamodb.NewFromConfig(config), name}
}

// Scan reads all items, as they are at the moment when each is read.
func (t *Table) Scan(ctx context.Context) ([]table.Item, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	found := make([][]table.Item, scanSegments)
	errs := make([]error, scanSegments)
	for i := range scanSegments {
		wg.Go(func() {
			if found[i], errs[i] = t.scan(ctx, int32(i)); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	var items []table.Item
	for i := range found {
		if errs[i] != nil && !errors.Is(errs[i], context.Canceled) {
			return nil, fmt.Errorf("scan %s: %w", t.name, plain(errs[i]))
		}
		items = append(items, found[i]...)
	}
	return items, errors.Join(ctx.Err(), errors.Join(errs...))
}

func (t *Table) scan(ctx context.Context, segment int32) (items []table.Item, err error) {
	pages := dynamodb.NewScanPaginator(t.client, &dynamodb.ScanInput{
		TableName: &t.name, ConsistentRead: aws.Bool(true), Segment: &segment, TotalSegments: aws.Int32(scanSegments),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, attributes := range page.Items {
			items = append(items, ItemOf(attributes))
		}
	}
	return items, nil
}

// Get reads an item. Ok is false where there is none.
func (t *Table) Get(ctx context.Context, key string) (it table.Item, ok bool, err error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.name, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{attrKey: text(key)},
	})
	if err != nil {
		return it, false, fmt.Errorf("get %s of %s: %w", key, t.name, plain(err))
	}
	if out.Item == nil {
		return it, false, nil
	}
	return ItemOf(out.Item), true, nil
}

// Put writes an item as the next version of the one that was read, whose Version is 0
// where there was none, or none that was a version, and Odd what stood there. Where that is
// not the newest it returns ErrConflict, and after the largest version ErrLastVersion.
func (t *Table) Put(ctx context.Context, it table.Item) (written table.Item, err error) {
	if it.Version >= table.MaxVersion {
		return it, fmt.Errorf("put %s: %w", it.Key, ErrLastVersion)
	}
	was := it
	it.Version++
	it.InvalidVersion = ""
	return it, t.Replace(ctx, it, &was)
}

// Replace writes an item as it is in the place of what was read, nil for nothing. Where
// something else is there by now it returns ErrConflict.
func (t *Table) Replace(ctx context.Context, it table.Item, was *table.Item) error {
	in := &dynamodb.PutItemInput{TableName: &t.name, Item: attributesOf(&it), ConditionExpression: aws.String("#v = :was"), ExpressionAttributeNames: map[string]string{"#v": attrVersion}}
	switch {
	case was != nil && was.Version > 0:
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":was": number(was.Version)}
	case was != nil && was.InvalidVersion != "":
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":was": &types.AttributeValueMemberN{Value: was.InvalidVersion}}
	default: // nothing was there, or nothing with a number
		in.ConditionExpression = aws.String("attribute_not_exists(#v) OR NOT attribute_type(#v, :number)")
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":number": text("N")}
	}
	return t.put(ctx, &it, in)
}

// put writes an item under a condition. Where it is refused because the item is there
// already, word for word, it was written before by the same call, whose reply was lost.
func (t *Table) put(ctx context.Context, it *table.Item, in *dynamodb.PutItemInput) error {
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	_, err := t.client.PutItem(ctx, in)
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		if reflect.DeepEqual(refused.Item, in.Item) {
			return nil
		}
		return fmt.Errorf("put %s: %w", it.Key, ErrConflict)
	}
	var invalid smithy.APIError
	if errors.As(err, &invalid) && invalid.ErrorCode() == "ValidationException" { // too large, mostly
		return fmt.Errorf("put %s of %s: %w: %w", it.Key, t.name, table.ErrUnwritable, err)
	}
	if err != nil {
		return fmt.Errorf("put %s of %s: %w", it.Key, t.name, plain(err))
	}
	return nil
}

// Create makes the table, with a stream of new and old images, and returns when it can be
// used. It is for tests and for trying out: in production a template makes it.
func (t *Table) Create(ctx context.Context) error {
	_, err := t.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &t.name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(attrKey), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(attrKey), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		return fmt.Errorf("create table %s: %w", t.name, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(t.client)
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &t.name}, time.Minute); err != nil {
		return fmt.Errorf("create table %s: %w", t.name, err)
	}
	return nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// integer reads a number; what is none is 0.
func integer(value types.AttributeValue) (n int64) {
	if v, ok := value.(*types.AttributeValueMemberN); ok {
		n, _ = strconv.ParseInt(v.Value, 10, 64)
	}
	return n
}

func attributesOf(it *table.Item) map[string]types.AttributeValue {
	attributes := map[string]types.AttributeValue{
		attrKey: text(it.Key), attrVersion: number(it.Version), attrActor: text(it.Actor), attrAt: text(it.At.UTC().Format(time.RFC3339Nano)),
	}
	if it.Deleted {
		attributes[attrDeleted] = &types.AttributeValueMemberBOOL{Value: true}
		attributes[attrExpires] = number(it.At.Add(table.TombstoneTTL).Unix())
	} else {
		attributes[attrBody] = text(string(it.Body))
	}
	return attributes
}

// ItemOf reads an item from its attributes. What is not there, or of another type, is left zero: whoever uses
// the item finds that it is none.
func ItemOf(attributes map[string]types.AttributeValue) (it table.Item) {
	word := func(name string) string {
		if v, ok := attributes[name].(*types.AttributeValueMemberS); ok {
			return v.Value
		}
		return ""
	}
	it.Key, it.Actor = word(attrKey), word(attrActor)
	if body := word(attrBody); body != "" {
		it.Body = json.RawMessage(body)
		if !json.Valid(it.Body) { // written by hand; as a text it can be told and written down
			it.Body, _ = json.Marshal(body)
		}
	}
	it.Version = integer(attributes[attrVersion])
	if v, ok := attributes[attrVersion].(*types.AttributeValueMemberN); ok && (it.Version < 1 || it.Version > table.MaxVersion || v.Value != strconv.FormatInt(it.Version, 10)) {
		it.Version, it.InvalidVersion = 0, v.Value
	}
	if at, err := time.Parse(time.RFC3339Nano, word(attrAt)); err == nil && at.UTC().Year() > 0 && at.UTC().Year() <= maxYear {
		it.At = at.UTC()
	}
	if v, ok := attributes[attrDeleted].(*types.AttributeValueMemberBOOL); ok {
		it.Deleted = v.Value
	}
	return it
}
