package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
)

const (
	auditBucket = "limits-audit"
	// auditAhead is how many changes may be written before the audit has them: enough
	// that the next control plane after a kill has a batch in which it can be killed,
	// too.
	auditAhead = 60
	// auditTenants is how many tenants are changed at the same time.
	auditTenants = 20
	// byHandEvery is the share of changes without an actor: one in so many.
	byHandEvery = 20
)

// archive creates the bucket of the audit, in which no object can be deleted.
func (s *site) archive() *s3.Client {
	s.tb.Helper()
	client := s3.NewFromConfig(s.Config, func(o *s3.Options) { o.UsePathStyle = true })
	if _, err := client.CreateBucket(s.tb.Context(), &s3.CreateBucketInput{
		Bucket: aws.String(auditBucket), ObjectLockEnabledForBucket: aws.Bool(true),
		CreateBucketConfiguration: &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(s.Config.Region)},
	}); err != nil {
		s.tb.Fatal(err)
	}
	if _, err := client.PutObjectLockConfiguration(s.tb.Context(), &s3.PutObjectLockConfigurationInput{
		Bucket: aws.String(auditBucket), ChecksumAlgorithm: s3types.ChecksumAlgorithmSha256,
		ObjectLockConfiguration: &s3types.ObjectLockConfiguration{
			ObjectLockEnabled: s3types.ObjectLockEnabledEnabled,
			Rule:              &s3types.ObjectLockRule{DefaultRetention: &s3types.DefaultRetention{Mode: s3types.ObjectLockRetentionModeCompliance, Days: aws.Int32(1)}},
		},
	}); err != nil {
		s.tb.Fatal(err)
	}
	return client
}

// changer changes tenants in every possible way, one change after the other.
type changer struct {
	*site
	random  *rand.Rand
	raw     *dynamodb.Client
	items   []tables.Item // the tenants that may be changed
	made    int           // changes
	byHand  int           // of them without an actor
	tenants int           // that ever existed
}

// change makes one change.
func (c *changer) change() {
	c.tb.Helper()
	c.made++
	if len(c.items) < auditTenants {
		c.tenants++
		c.items = append(c.items, c.sign(tables.Item{Key: fmt.Sprint("TENANT#", c.tenants)}))
		return
	}
	i := c.random.IntN(len(c.items))
	it := c.items[i]
	switch {
	case it.Deleted:
		it.Deleted = false // created again
	case c.made%byHandEvery == 0:
		c.unsigned(it)
		c.items = slices.Delete(c.items, i, i+1) // the control plane changes it from now on
		return
	case c.random.IntN(4) == 0:
		it.Deleted = true
	}
	c.items[i] = c.sign(it)
}

// sign writes the next version of an item.
func (c *changer) sign(it tables.Item) tables.Item {
	c.tb.Helper()
	it.Actor, it.At, it.Body = []string{"ann", "bob"}[c.made%2], time.Now().UTC(), nil
	if !it.Deleted {
		it.Body = json.RawMessage(fmt.Sprintf(`{"plan":"free","overrides":{"tenant":{"rate":"%d/s"}}}`, c.made))
	}
	written, err := c.table.Put(c.tb.Context(), it)
	if err != nil {
		c.tb.Fatal(err)
	}
	return written
}

// unsigned deletes or changes an item as a person in AWS's console would.
func (c *changer) unsigned(it tables.Item) {
	c.tb.Helper()
	c.byHand++
	key := map[string]dbtypes.AttributeValue{"pk": &dbtypes.AttributeValueMemberS{Value: it.Key}}
	var err error
	if c.byHand%2 == 0 {
		_, err = c.raw.DeleteItem(c.tb.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("limits"), Key: key})
	} else {
		_, err = c.raw.UpdateItem(c.tb.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("limits"), Key: key, UpdateExpression: aws.String("SET body = :b"),
			ExpressionAttributeValues: map[string]dbtypes.AttributeValue{":b": &dbtypes.AttributeValueMemberS{Value: `{"plan":"gold"}`}},
		})
	}
	if err != nil {
		c.tb.Fatal(err)
	}
}

// auditedImage is an item in an object of the audit.
type auditedImage struct {
	Key     string          `json:"key"`
	Body    json.RawMessage `json:"body"`
	Version int64           `json:"version"`
	Actor   string          `json:"actor"`
	At      time.Time       `json:"at"`
	Deleted bool            `json:"deleted"`
}

// audited is an object of the audit.
type audited struct {
	Key      string        `json:"key"`
	Sequence string        `json:"sequence"`
	Actor    string        `json:"actor"`
	Version  int64         `json:"version"`
	At       time.Time     `json:"at"`
	Before   *auditedImage `json:"before"`
	After    *auditedImage `json:"after"`
}

// objects returns the names of all objects, and checks that each has one version and none
// was deleted.
func objects(tb testing.TB, client *s3.Client) (names []string) {
	tb.Helper()
	pages := s3.NewListObjectVersionsPaginator(client, &s3.ListObjectVersionsInput{Bucket: aws.String(auditBucket)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		for _, v := range page.Versions {
			names = append(names, aws.ToString(v.Key))
		}
		if len(page.DeleteMarkers) > 0 {
			tb.Errorf("%d objects were deleted", len(page.DeleteMarkers))
		}
	}
	return names
}

// readAudit reads all objects, by their sequence numbers.
func readAudit(tb testing.TB, client *s3.Client) map[string]audited {
	tb.Helper()
	entries := map[string]audited{}
	for _, name := range objects(tb, client) {
		got, err := client.GetObject(tb.Context(), &s3.GetObjectInput{Bucket: aws.String(auditBucket), Key: &name})
		if err != nil {
			tb.Fatal(err)
		}
		body, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		var e audited
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		if was, twice := entries[e.Sequence]; twice {
			tb.Errorf("the change %s is written down twice, of %s and %s", e.Sequence, was.Key, e.Key)
		}
		entries[e.Sequence] = e
	}
	return entries
}

// streamRecords reads the whole stream of the table of limits.
func (s *site) streamRecords() (records []types.Record) {
	s.tb.Helper()
	ctx, client := s.tb.Context(), dynamodbstreams.NewFromConfig(s.Config)
	described, err := dynamodb.NewFromConfig(s.Config).DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("limits")})
	if err != nil {
		s.tb.Fatal(err)
	}
	arn := described.Table.LatestStreamArn
	stream, err := client.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil {
		s.tb.Fatal(err)
	}
	for _, shard := range stream.StreamDescription.Shards {
		at, err := client.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon})
		if err != nil {
			s.tb.Fatal(err)
		}
		for next := at.ShardIterator; next != nil; {
			page, err := client.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next})
			if err != nil {
				s.tb.Fatal(err)
			}
			if len(page.Records) == 0 {
				break
			}
			records, next = append(records, page.Records...), page.NextShardIterator
		}
	}
	s.numberedOnce(records)
	return records
}

// numberedOnce fails the test if two changes of a stream have the same sequence number:
// then the emulator is wrong, and so is every check by these numbers.
func (s *site) numberedOnce(records []types.Record) {
	s.tb.Helper()
	keys := map[string]string{}
	for i := range records {
		number, key := sequence(&records[i]), imageOf(s.tb, records[i].Dynamodb.Keys).Key
		if other, twice := keys[number]; twice {
			s.tb.Fatalf("the emulator has given the sequence number %s to changes of %s and %s", number, other, key)
		}
		keys[number] = key
	}
}

// imageOf decodes an image of the stream, nil for none.
func imageOf(tb testing.TB, attributes map[string]types.AttributeValue) *auditedImage {
	tb.Helper()
	if attributes == nil {
		return nil
	}
	it := &auditedImage{}
	var err error
	for name, value := range attributes {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			switch name {
			case "pk":
				it.Key = v.Value
			case "body":
				it.Body = json.RawMessage(v.Value)
			case "updated_by":
				it.Actor = v.Value
			case "updated_at":
				it.At, err = time.Parse(time.RFC3339Nano, v.Value)
			}
		case *types.AttributeValueMemberN:
			if name == "version" {
				_, err = fmt.Sscan(v.Value, &it.Version)
			}
		case *types.AttributeValueMemberBOOL:
			it.Deleted = v.Value
		}
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
	}
	return it
}

func sameImage(a, b *auditedImage) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Key == b.Key && string(a.Body) == string(b.Body) && a.Version == b.Version && a.Actor == b.Actor && a.At.Equal(b.At) && a.Deleted == b.Deleted
}

// checkEntry compares an audit entry with a record of the stream.
func checkEntry(t *testing.T, e audited, r types.Record) {
	t.Helper()
	before, after := imageOf(t, r.Dynamodb.OldImage), imageOf(t, r.Dynamodb.NewImage)
	want := audited{Key: imageOf(t, r.Dynamodb.Keys).Key, Actor: "unknown"}
	switch {
	case after == nil:
		want.Version = before.Version
	case before != nil && before.Version == after.Version:
		want.Version = after.Version
	default:
		want.Version, want.Actor, want.At = after.Version, after.Actor, after.At
	}
	signed := want.Actor != "unknown"
	if e.Key != want.Key || e.Version != want.Version || e.Actor != want.Actor || signed && !e.At.Equal(want.At) || e.At.IsZero() {
		t.Errorf("%s: written down as %s, version %d by %s at %s, want %+v", e.Sequence, e.Key, e.Version, e.Actor, e.At, want)
	}
	if !sameImage(e.Before, before) || !sameImage(e.After, after) {
		t.Errorf("%s: %+v became %+v, but it is written down that %+v became %+v", e.Sequence, before, after, e.Before, e.After)
	}
}

// exactAudit makes changes while the control plane, which audits them, is killed and
// restarted at random. At the end there is exactly one object for each change, and for
// each change by which the control plane reverted one without an actor.
func exactAudit(t *testing.T, changes, kills int) {
	begun := time.Now()
	s := newSerialSite(t)
	bucket := s.archive()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	var cuts []int
	for range kills {
		cuts = append(cuts, 1+random.IntN(changes))
	}
	slices.Sort(cuts)
	c := &changer{site: s, random: random, raw: dynamodb.NewFromConfig(s.Config)}
	plane := s.controlPlane("--audit-bucket", auditBucket)
	for i := 0; c.made < changes || i < len(cuts); {
		n := 0
		eventually(t, fmt.Sprintf("the audit goes on after %d changes and %d kills", c.made, i), func() bool {
			n = len(objects(t, bucket))
			return c.made < changes && c.made+c.byHand-n < auditAhead || i < len(cuts) && n >= cuts[i]
		})
		if i < len(cuts) && n >= cuts[i] {
			_ = plane.stop(syscall.SIGKILL)
			plane = s.controlPlane("--audit-bucket", auditBucket)
			i++
		}
		for c.made < changes && c.made+c.byHand-n < auditAhead {
			c.change()
		}
	}
	eventually(t, "all changes are written down", func() bool { return len(objects(t, bucket)) >= c.made+c.byHand })
	if err := plane.stop(syscall.SIGTERM); err != nil {
		t.Errorf("the control plane: %v\n%s", err, plane.output())
	}
	actors := c.check(t, readAudit(t, bucket))
	t.Logf("%d changes, %d of them by hand, with the control plane killed after %v objects: %d objects, of which %d are of what it put back; by %v; %s (seed %d)",
		changes, c.byHand, cuts, changes+c.byHand, actors["control-plane"], actors, time.Since(begun).Round(time.Second), seed)
}

// check compares the audit with the whole stream, and returns how many entries each actor
// has.
func (c *changer) check(t *testing.T, entries map[string]audited) (actors map[string]int) {
	t.Helper()
	records := c.streamRecords()
	actors = map[string]int{}
	for _, r := range records {
		sequence := aws.ToString(r.Dynamodb.SequenceNumber)
		e, ok := entries[sequence]
		if !ok {
			t.Errorf("nothing is written down of %s", sequence)
			continue
		}
		checkEntry(t, e, r)
		actors[e.Actor]++
	}
	if len(records) != c.made+c.byHand || len(entries) != len(records) || actors["control-plane"] != c.byHand || actors["unknown"] != c.byHand {
		t.Errorf("%d changes, %d of them by hand, are %d records and %d objects, by %v", c.made, c.byHand, len(records), len(entries), actors)
	}
	return actors
}

// TestAuditIsExact: the audit is exact although the control plane is killed.
func TestAuditIsExact(t *testing.T) {
	t.Parallel()
	exactAudit(t, 100, 2)
}
