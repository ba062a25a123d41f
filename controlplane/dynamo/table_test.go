package dynamo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awstest"
)

// TestPutAndGet: an item is written as the next version, only on the newest version,
// and read back.
func TestPutAndGet(t *testing.T) {
	t.Parallel()
	limits := newTable(t, awstest.Share(t))
	if _, ok, err := limits.Get(t.Context(), "TENANT#a"); ok || err != nil {
		t.Fatalf("an item that was never written: %v, %v", ok, err)
	}
	first := put(t, limits, item("TENANT#a", 0, `{"plan":"free"}`))
	if want := item("TENANT#a", 1, `{"plan":"free"}`); !reflect.DeepEqual(first, want) {
		t.Errorf("written as %+v, want %+v", first, want)
	}
	first.Body = []byte(`{"plan":"gold"}`)
	second := put(t, limits, first)
	got, ok, err := limits.Get(t.Context(), "TENANT#a")
	if err != nil || !ok || !reflect.DeepEqual(got, second) || got.Version != 2 {
		t.Errorf("read %+v, %v, %v, want %+v", got, ok, err, second)
	}
	older := item("TENANT#a", 1, `{}`)
	for name, it := range map[string]table.Item{
		"older": older, "none": item("TENANT#a", 0, `{}`), "newer": item("TENANT#a", 3, `{}`), "of none": item("TENANT#b", 1, `{}`),
	} {
		if _, err := limits.Put(t.Context(), it); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), it.Key) {
			t.Errorf("a write on a version that is %s: %v", name, err)
		}
	}
	if got, _, _ := limits.Get(t.Context(), "TENANT#a"); !reflect.DeepEqual(got, second) {
		t.Errorf("a refused write left %+v", got)
	}
}

// TestOneOfManyWritersWins: of many writes on the same version one succeeds, in each of
// many rounds.
func TestOneOfManyWritersWins(t *testing.T) {
	t.Parallel()
	a := awstest.ShareAtomic(t)
	limits := newTable(t, a)
	read := item("PLAN#p", 0, `{}`)
	const rounds, writers = 20, 16
	for round := range rounds {
		var won []table.Item
		var mu sync.Mutex // guards won
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				it := read
				it.Actor = strconv.Itoa(i)
				written, err := limits.Put(t.Context(), it)
				if err != nil {
					if !errors.Is(err, ErrConflict) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				won = append(won, written)
			})
		}
		wg.Wait()
		got, _, err := limits.Get(t.Context(), "PLAN#p")
		if len(won) != 1 || err != nil || !reflect.DeepEqual(got, won[0]) || got.Version != int64(round+1) {
			t.Fatalf("round %d: %+v, %v, but %+v were acknowledged", round, got, err, won)
		}
		read = got
	}
	stream, err := OpenStream(t.Context(), a.Config, "limits")
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range recordsOf(t, stream, rounds) {
		if r.After == nil || r.After.Version != int64(i+1) || (r.Before != nil) != (i > 0) || i > 0 && r.Before.Version != int64(i) {
			t.Fatalf("record %d of the stream is %+v behind %+v", i, r.After, r.Before)
		}
	}
}

// recordsOf reads a stream until it has returned n records.
func recordsOf(t *testing.T, s *Stream, n int) []table.Record {
	t.Helper()
	shards, err := s.Shards(t.Context())
	if err != nil || len(shards) != 1 {
		t.Fatalf("shards %v, %v", shards, err)
	}
	iterator, err := s.Start(t.Context(), shards[0].ID, "")
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, "the records of the stream", func(ctx context.Context) (records []table.Record, err error) {
		records, iterator, err = s.Read(ctx, iterator)
		return records, err
	}, atLeast[table.Record](n))
}

// TestLostReply: a write that succeeded, and whose reply was lost, does not conflict
// with its own retry.
func TestLostReply(t *testing.T) {
	t.Parallel()
	relay := &awstest.Relay{Lose: .5}
	a := awstest.ShareAtomic(t)
	newTable(t, a)
	through := a.Through(t, relay)
	through.Config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff, o.RateLimiter = 40, time.Millisecond, ratelimit.None
		})
	}
	limits := NewTable(through.Config, "limits")
	it := item("TENANT#a", 0, `{}`)
	for i := range 20 {
		if i == 10 {
			it = tombstone(it.Key, it.Version)
		}
		written, err := limits.Put(t.Context(), it)
		if err != nil || written.Version != int64(i+1) {
			t.Fatalf("write %d: %+v, %v", i, written, err)
		}
		if now, ok, err := limits.Get(t.Context(), it.Key); !ok || err != nil || !reflect.DeepEqual(now, written) {
			t.Fatalf("written as %+v, read as %+v, %v", written, now, err)
		}
		it = written
	}
	if relay.Lost.Load() == 0 {
		t.Error("no reply was lost")
	}
	stale := it
	stale.Version--
	stale.Actor = "bob"
	if _, err := limits.Put(t.Context(), stale); !errors.Is(err, ErrConflict) {
		t.Errorf("a write on a version that is not the newest: %v", err)
	}
}

// TestTombstone: a deleted item is stored, with a version and an actor, until it
// expires, and an item that is created again continues its versions.
func TestTombstone(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	limits := newTable(t, a)
	put(t, limits, item("TENANT#a", 0, `{}`))
	gone := put(t, limits, tombstone("TENANT#a", 1))
	got, ok, err := limits.Get(t.Context(), "TENANT#a")
	if err != nil || !ok || !reflect.DeepEqual(got, tombstone("TENANT#a", 2)) {
		t.Errorf("read %+v, %v, %v", got, ok, err)
	}
	attributes := raw(t, a, "TENANT#a")
	expires, _ := attributes[attrExpires].(*types.AttributeValueMemberN)
	if want := gone.At.Add(table.TombstoneTTL).Unix(); expires == nil || expires.Value != strconv.FormatInt(want, 10) {
		t.Errorf("it expires at %+v, want %d", attributes[attrExpires], want)
	}
	if _, ok := attributes[attrBody]; ok {
		t.Error("a tombstone has a body")
	}
	if _, err := limits.Put(t.Context(), item("TENANT#a", 0, `{}`)); !errors.Is(err, ErrConflict) {
		t.Errorf("written as if there had never been one: %v", err)
	}
	again := put(t, limits, item("TENANT#a", 2, `{}`))
	if got, _, _ := limits.Get(t.Context(), "TENANT#a"); !reflect.DeepEqual(got, again) || got.Version != 3 {
		t.Errorf("made again it is %+v", got)
	}
	if _, ok := raw(t, a, "TENANT#a")[attrExpires]; ok {
		t.Error("what was made again expires")
	}
}

// TestScan: a scan returns every item once, also when a segment has more than one page
// of 1 MiB.
func TestScan(t *testing.T) {
	t.Parallel()
	limits := newTable(t, awstest.Share(t))
	if items, err := limits.Scan(t.Context()); len(items) != 0 || err != nil {
		t.Fatalf("an empty table: %v, %v", items, err)
	}
	const n = 400
	body := `{"pad":"` + strings.Repeat("x", 16<<10) + `"}` // 6.4 MiB in all, four segments
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := w; i < n; i += 4 {
				it := item(fmt.Sprintf("TENANT#%d", i), 0, body)
				if i%10 == 0 {
					it = tombstone(it.Key, 0)
				}
				if _, err := limits.Put(t.Context(), it); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	items, err := limits.Scan(t.Context())
	if err != nil || len(items) != n {
		t.Fatalf("%d items, %v", len(items), err)
	}
	seen := map[string]bool{}
	for _, it := range items {
		want := item(it.Key, 1, body)
		if it.Deleted {
			want = tombstone(it.Key, 1)
		}
		if !reflect.DeepEqual(it, want) {
			t.Errorf("%s is read as version %d by %s at %s, %d bytes", it.Key, it.Version, it.Actor, it.At, len(it.Body))
		}
		seen[it.Key] = true
	}
	if len(seen) != n {
		t.Errorf("only %d different items", len(seen))
	}
}

// TestTableOfAnotherKey: a table whose key is not pk gets a sentence about its key, and a stream
// without old images one about its images.
func TestTableOfAnotherKey(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	client := dynamodb.NewFromConfig(a.Config)
	if _, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("other-key"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage},
	}); err != nil {
		t.Fatal(err)
	}
	other := NewTable(a.Config, "other-key")
	const want = `the key of the table is "id", a string, and limits need "pk", a string: create it as docs/limits-as-data.md does`
	if _, err := other.Scan(t.Context()); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("scan: %v", err)
	}
	if _, _, err := other.Get(t.Context(), "SHARED"); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("get: %v", err)
	}
	if _, err := other.Put(t.Context(), item("SHARED", 0, `{}`)); err == nil || !strings.HasSuffix(err.Error(), want) || errors.Is(err, table.ErrUnwritable) {
		t.Errorf("put: %v", err)
	}
	if err := NewRegistry(a.Config, "other-key").CheckKey(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "scan other-key: the key of the table is \"id\", a string, and cells need ") {
		t.Errorf("cells: %v", err)
	}
	if _, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("no-stream"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
	const none = "open stream of no-stream: the table has none: enable one with new and old images: aws dynamodb update-table --table-name no-stream --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES"
	if _, err := OpenStream(t.Context(), a.Config, "no-stream"); err == nil || err.Error() != none {
		t.Errorf("no stream: %v", err)
	}
	const images = "open stream of other-key: it has NEW_IMAGE: enable one with new and old images (NEW_AND_OLD_IMAGES)"
	if _, err := OpenStream(t.Context(), a.Config, "other-key"); err == nil || err.Error() != images {
		t.Errorf("stream: %v", err)
	}
}

// TestTableOfAnotherType: the error of a table whose key pk is a number, or that has a sort key, says so.
func TestTableOfAnotherType(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
	}
	key := func(name string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(name), KeyType: kind}
	}
	for name, row := range map[string]struct {
		attributes []types.AttributeDefinition
		keys       []types.KeySchemaElement
		want       string
	}{
		"number-key": {[]types.AttributeDefinition{attribute("pk", "N")}, []types.KeySchemaElement{key("pk", "HASH")}, `the key of the table is "pk", a number, and limits need "pk", a string: `},
		"sort-key":   {[]types.AttributeDefinition{attribute("pk", "S"), attribute("sk", "S")}, []types.KeySchemaElement{key("pk", "HASH"), key("sk", "RANGE")}, `the table has the sort key "sk", and limits need the key pk alone: `},
	} {
		if _, err := dynamodb.NewFromConfig(a.Config).CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest, AttributeDefinitions: row.attributes, KeySchema: row.keys,
		}); err != nil {
			t.Fatal(err)
		}
		other := NewTable(a.Config, name)
		if _, err := other.Put(t.Context(), item("SHARED", 0, `{}`)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: put: %v", name, err)
		}
		if _, err := other.Scan(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: scan: %v", name, err)
		}
	}
}

// TestNoTable: the error of a missing table has the endpoint of AWS, or that of an emulator and its variable.
func TestNoTable(t *testing.T) {
	for _, row := range []struct {
		base *string
		want string
	}{
		{nil, `there is no table "limits" in the region eu-central-1 at https://dynamodb.eu-central-1.amazonaws.com: check its name, AWS_REGION and AWS_PROFILE; docs/limits-as-data.md has the command that makes one`},
		{aws.String("http://user:secret@127.0.0.1:5566/x"), `there is no table "limits" in the region eu-central-1 at http://127.0.0.1:5566: check its name, AWS_REGION, AWS_PROFILE and AWS_ENDPOINT_URL; docs/limits-as-data.md has the command that makes one`},
	} {
		client := dynamodb.New(dynamodb.Options{Region: "eu-central-1", BaseEndpoint: row.base})
		for _, code := range []string{"ResourceNotFoundException", "TableNotFoundException"} {
			if err := Plain(client, "limits", &smithy.GenericAPIError{Code: code}); err == nil || err.Error() != row.want {
				t.Errorf("%v, want %s", err, row.want)
			}
		}
	}
}

// TestTableThatIsNotThere: a mistyped name is reported, and a cancelled scan returns no
// other error.
func TestTableThatIsNotThere(t *testing.T) {
	t.Parallel()
	a := awstest.Share(t)
	nowhere := NewTable(a.Config, "nowhere")
	if _, err := nowhere.Scan(t.Context()); err == nil || err.Error() != "scan nowhere: there is no table \"nowhere\" in the region "+a.Config.Region+" at "+*a.Config.BaseEndpoint+": check its name, AWS_REGION, AWS_PROFILE and AWS_ENDPOINT_URL; docs/limits-as-data.md has the command that makes one" {
		t.Errorf("scan: %v", err)
	}
	if _, _, err := nowhere.Get(t.Context(), "SHARED"); err == nil || !strings.HasPrefix(err.Error(), "get SHARED of nowhere: ") {
		t.Errorf("get: %v", err)
	}
	if _, err := nowhere.Put(t.Context(), item("SHARED", 0, `{}`)); err == nil || errors.Is(err, ErrConflict) {
		t.Errorf("put: %v", err)
	}
	if _, err := OpenStream(t.Context(), a.Config, "nowhere"); err == nil || !strings.HasPrefix(err.Error(), "open stream of nowhere: ") {
		t.Errorf("stream: %v", err)
	}
	limits := newTable(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := limits.Scan(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("scan of one who gave up: %v", err)
	}
}

// TestLastVersion: no version follows the largest one, which only a write by hand sets.
// An item that is too large for DynamoDB is ErrUnwritable.
func TestLastVersion(t *testing.T) {
	t.Parallel()
	limits := newTable(t, awstest.Share(t))
	last := item("TENANT#a", table.MaxVersion, `{}`)
	if err := limits.Replace(t.Context(), last, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := limits.Put(t.Context(), last); !errors.Is(err, ErrLastVersion) {
		t.Errorf("written over: %v", err)
	}
	if it, _, err := limits.Get(t.Context(), last.Key); err != nil || it.Version != table.MaxVersion {
		t.Errorf("it is %+v, %v", it, err)
	}
	if _, err := limits.Put(t.Context(), item("TENANT#large", 0, `"`+strings.Repeat("x", 410<<10)+`"`)); !errors.Is(err, table.ErrUnwritable) {
		t.Errorf("too large: %v", err)
	}
}
