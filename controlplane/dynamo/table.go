// Package dynamo stores limits in Amazon DynamoDB, item by item, and publishes changes
// by Amazon SNS and SQS. It promises that a write replaces the version that was read,
// or fails. Its clients come from aws-sdk-go-v2, with its environment and files.
package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
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

// scanSegments is the number of parts of a table that are read concurrently.
const scanSegments = 4

// maxYear is the last year of a time that can be encoded as JSON. The year is that in
// UTC: a time in a table may have a zone that is a day away.
const maxYear = 9999

// ErrConflict is returned for a write on a version that is not the newest any more.
var ErrConflict = errors.New("it was changed concurrently")

// ErrLastVersion is returned for a write over an item of the largest version, which
// only a write by hand can set.
var ErrLastVersion = errors.New("its version is the largest possible, which only a write by hand sets: delete the item by hand, and write it again when the control plane has restored it")

// Plain replaces an error of DynamoDB about a table by a clearer one, if there is one.
func Plain(client *dynamodb.Client, name string, err error) error {
	if isNoTable(err) {
		return noTable(client.Options(), name)
	}
	if isOtherKey(err) {
		return errOtherKey
	}
	return err
}

// isNoTable reports whether DynamoDB has no such table.
func isNoTable(err error) bool {
	var refused smithy.APIError
	return errors.As(err, &refused) && slices.Contains(notFound, refused.ErrorCode())
}

// notFound are the codes of a table that does not exist.
var notFound = []string{"ResourceNotFoundException", "TableNotFoundException", "ResourceNotFound"}

// noTable returns the error of a table that does not exist where the options of a client look for it.
func noTable(o dynamodb.Options, name string) error {
	at, check := "", "AWS_REGION and AWS_PROFILE"
	endpoint, err := o.EndpointResolverV2.ResolveEndpoint(context.Background(), dynamodb.EndpointParameters{Region: &o.Region, Endpoint: o.BaseEndpoint})
	if err == nil {
		at = " at " + endpoint.URI.Scheme + "://" + endpoint.URI.Host
	}
	if o.BaseEndpoint != nil {
		check = "AWS_REGION, AWS_PROFILE and AWS_ENDPOINT_URL"
	}
	return fmt.Errorf("there is no table %q in the region %s%s: check its name, %s; docs/limits-as-data.md has the command that makes one", name, o.Region, at, check)
}

var errOtherKey = errors.New("the key of the table is not " + attrKey + keyAdvice)

// isOtherKey reports whether DynamoDB refuses an item or its key because the key of the table has
// another name or type.
func isOtherKey(err error) bool {
	var invalid smithy.APIError
	return errors.As(err, &invalid) && invalid.ErrorCode() == "ValidationException" &&
		slices.ContainsFunc([]string{"Missing the key", "does not match the schema", "Type mismatch for key"}, func(part string) bool {
			return strings.Contains(invalid.ErrorMessage(), part)
		})
}

// keyAdvice follows what is wrong with the key of a table.
const keyAdvice = ": create it as docs/limits-as-data.md does"

// plain replaces an error of DynamoDB by a clearer one, if there is one.
func (t *Table) plain(ctx context.Context, err error) error {
	if isOtherKey(err) {
		if problem := keyProblem(ctx, t.client, t.name, "limits"); problem != "" {
			return errors.New(problem)
		}
	}
	return Plain(t.client, t.name, err)
}

// keyProblem returns why items, limits or cells, do not fit the key of a table. It returns "" if they fit, or
// if this client may not ask.
func keyProblem(ctx context.Context, client *dynamodb.Client, tableName, items string) string {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &tableName})
	if err != nil || out.Table == nil {
		return ""
	}
	kinds := map[string]string{}
	for _, a := range out.Table.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = map[types.ScalarAttributeType]string{"S": "a string", "N": "a number", "B": "bytes"}[a.AttributeType]
	}
	for _, k := range out.Table.KeySchema {
		name := aws.ToString(k.AttributeName)
		switch {
		case k.KeyType != "HASH":
			return fmt.Sprintf("the table has the sort key %.64q, and %s need the key %s alone%s", name, items, attrKey, keyAdvice)
		case name != attrKey || kinds[name] != "a string":
			return fmt.Sprintf("the key of the table is %.64q, %s, and %s need %q, a string%s", name, kinds[name], items, attrKey, keyAdvice)
		}
	}
	return ""
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

// Scan reads all items. Each read of an item is consistent; the whole is not a snapshot
// of one time.
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
			return nil, fmt.Errorf("scan %s: %w", t.name, t.plain(ctx, errs[i]))
		}
		items = append(items, found[i]...)
	}
	if err := errors.Join(ctx.Err(), errors.Join(errs...)); err != nil {
		return items, err
	}
	if !slices.ContainsFunc(items, func(it table.Item) bool { return table.IsKey(it.Key) }) {
		if problem := keyProblem(ctx, t.client, t.name, "limits"); problem != "" {
			return nil, fmt.Errorf("scan %s: %s", t.name, problem)
		}
	}
	return items, nil
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

// Get reads an item. Ok is false if there is none.
func (t *Table) Get(ctx context.Context, key string) (it table.Item, ok bool, err error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.name, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{attrKey: text(key)},
	})
	if err != nil {
		return it, false, fmt.Errorf("get %s of %s: %w", key, t.name, t.plain(ctx, err))
	}
	if out.Item == nil {
		return it, false, nil
	}
	return ItemOf(out.Item), true, nil
}

// Put writes an item as the next version of the one that was read. Version is 0 if
// there was no item, or none with a valid version; InvalidVersion is the invalid one.
// Put returns ErrConflict if the item was changed in between, and ErrLastVersion after
// the largest version.
func (t *Table) Put(ctx context.Context, it table.Item) (written table.Item, err error) {
	if it.Version >= table.MaxVersion {
		return it, fmt.Errorf("put %s: %w", it.Key, ErrLastVersion)
	}
	was := it
	it.Version++
	it.InvalidVersion = ""
	return it, t.Replace(ctx, it, &was)
}

// Replace writes an item, version included, in place of the one that was read, or of
// none if was is nil. It returns ErrConflict if the item was changed in between.
func (t *Table) Replace(ctx context.Context, it table.Item, was *table.Item) error {
	in := &dynamodb.PutItemInput{TableName: &t.name, Item: attributesOf(&it), ConditionExpression: aws.String("#v = :was"), ExpressionAttributeNames: map[string]string{"#v": attrVersion}}
	switch {
	case was != nil && was.Version > 0:
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":was": number(was.Version)}
	case was != nil && was.InvalidVersion != "":
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":was": &types.AttributeValueMemberN{Value: was.InvalidVersion}}
	default: // there was no item, or none with a numeric version
		in.ConditionExpression = aws.String("attribute_not_exists(#v) OR NOT attribute_type(#v, :number)")
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":number": text("N")}
	}
	return t.put(ctx, &it, in)
}

// put writes an item under a condition. If the write is refused although the stored
// item equals the new one, an earlier attempt of the same call wrote it, and its reply
// was lost.
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
	if errors.As(err, &invalid) && invalid.ErrorCode() == "ValidationException" && !isOtherKey(err) { // usually because it is too large
		return fmt.Errorf("put %s of %s: %w: %w", it.Key, t.name, table.ErrUnwritable, err)
	}
	if err != nil {
		return fmt.Errorf("put %s of %s: %w", it.Key, t.name, t.plain(ctx, err))
	}
	return nil
}

// Create creates the table, with a stream of new and old images, and returns when it
// can be used. It is for tests and trials: in production a template creates the table.
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

// integer parses a number; it returns 0 for other values.
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

// ItemOf parses the attributes of an item. Missing attributes and those of another type
// are left zero, so that IsLimits is false.
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
		if !json.Valid(it.Body) { // it was written by hand; as a string it can be sent and stored
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
