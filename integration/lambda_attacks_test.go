package integration

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
)

// digestsUntil makes the relay publish digests of the table, as its schedule does, until
// ok.
func (s *lambdaScene) digestsUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		s.relay.schedule(t)
		return ok()
	})
}

// has reports whether a proxy gives a tenant a limit.
func has(t *testing.T, p *proxy, tenant string, limit int64) bool {
	t.Helper()
	c := p.client()
	defer func() { _ = c.Close() }()
	return limitOfTenant(t, c, tenant) == limit
}

// TestLambdaTableMadeAgain: a table is deleted and created again with the same versions,
// and no function receives its stream. Proxies learn of it only by the schedule; with a
// new mapping they learn of changes by messages.
func TestLambdaTableMadeAgain(t *testing.T) {
	t.Parallel()
	s := newLambdaScene(t)
	s.start(lambdaRetries)
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"))
	enforce(t, "acme", 1000, p)
	name := aws.String("limits")
	if _, err := dynamodb.NewFromConfig(s.Config).DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: name}); err != nil {
		t.Fatal(err)
	}
	if err := dynamo.NewTable(s.Config, *name).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	const other = "acme: {plan: gold, overrides: {tenant: {rate: 700/s}}}"
	s.push(tableLimits(t, other), "bob")
	s.digestsUntil(t, "the other table's limits are enforced", func() bool { return has(t, p, "acme", 700) })
	s.start(lambdaRetries)
	s.push(tableLimits(t, other+", beta: {plan: gold}"), "bob")
	enforce(t, "beta", 1000, p)
	agree(t, "acme", p, s.serve(filepath.Join(t.TempDir(), "snapshot")))
}

// TestLambdaForgedAndRestored: a tenant that exists only in a message, and an older
// version that was restored, change nothing in the end. Only functions publish to the
// proxies.
func TestLambdaForgedAndRestored(t *testing.T) {
	t.Parallel()
	s := newLambdaScene(t)
	s.start(lambdaRetries)
	s.push(tableLimits(t, "acme: {plan: free}, gone: {plan: gold}"), "ann")
	old := s.rawItem("TENANT#gone")
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"))
	enforce(t, "gone", 100, p)

	at := time.Now().UTC()
	for _, it := range []tables.Item{
		{Key: "TENANT#evil", Version: 1 << 40, Actor: "eve", At: at, Body: json.RawMessage(`{"plan":"gold"}`)},
		{Key: "TENANT#acme", Version: 1 << 40, Actor: "eve", At: at, Body: json.RawMessage(`{"plan":"gold","overrides":{"tenant":{"rate":"9/s"}}}`)},
	} {
		body, err := json.Marshal(tables.Message{Item: &it, At: at})
		if err == nil {
			_, err = sns.NewFromConfig(s.Config).Publish(t.Context(), &sns.PublishInput{TopicArn: &s.topic, Message: aws.String(string(body))})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.changer.raw.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("limits"), Item: old}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the restored item is a tombstone again", func() bool {
		it := s.item("TENANT#gone")
		return it.Deleted && it.Actor == "control-plane" && it.Version == 3
	})
	s.digestsUntil(t, "what was forged is gone", func() bool { return has(t, p, "evil", 100) && has(t, p, "acme", 1000) })
	enforce(t, "gone", 100, p)
	if said := p.get("/readyz"); !strings.Contains(said, "limits_error") {
		t.Errorf("it does not say that messages were forged: %s", said)
	}
	s.checkEachVersion(t)
}

// rawItem reads the attributes of an item.
func (s *lambdaScene) rawItem(key string) map[string]types.AttributeValue {
	s.tb.Helper()
	got, err := s.changer.raw.GetItem(s.tb.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("limits"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}},
	})
	if err != nil || got.Item == nil {
		s.tb.Fatalf("%s: %v", key, err)
	}
	return got.Item
}

// checkEachVersion checks that the stream has each version of an item once, except those
// written by hand.
func (s *lambdaScene) checkEachVersion(t *testing.T) {
	t.Helper()
	times := map[string]int{}
	for _, name := range s.signed() {
		if times[name]++; times[name] > 1 {
			t.Errorf("%s was written %d times", name, times[name])
		}
	}
}

// byBoth is how many tenants are changed by hand while two programs revert such changes.
const byBoth = 12

// TestLambdaBesideControlPlane: a function and a control plane that follow one table
// revert each change by hand once, and their digests, published at two intervals, agree.
func TestLambdaBesideControlPlane(t *testing.T) {
	t.Parallel()
	s := newLambdaScene(t)
	s.start(lambdaRetries)
	plane := s.controlPlane()
	var tenants strings.Builder
	for i := range byBoth {
		fmt.Fprintf(&tenants, "t%d: {plan: free, overrides: {tenant: {rate: 300/s}}}, ", i)
	}
	s.push(tableLimits(t, strings.TrimSuffix(tenants.String(), ", ")), "ann")
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"))
	for i := range byBoth {
		s.changer.byHand = i // alternates between a change and a deletion
		s.changer.unsigned(tables.Item{Key: fmt.Sprint("TENANT#t", i)})
	}
	restored := func() (n int) {
		for i := range byBoth {
			if it, ok, err := s.table.Get(t.Context(), fmt.Sprint("TENANT#t", i)); err == nil && ok && it.Actor == "control-plane" {
				n++
			}
		}
		return n
	}
	eventually(t, "all are put back", func() bool { return restored() == byBoth })
	s.mapping.await(3 + 3*byBoth)
	for range 3 {
		s.relay.schedule(t)
		pause(time.Second)
	}
	if records := len(s.streamRecords()); records != 3+3*byBoth {
		t.Errorf("%d records, want %d: something was put back twice", records, 3+3*byBoth)
	}
	s.checkEachVersion(t)
	for i := range byBoth {
		if it := s.item(fmt.Sprint("TENANT#t", i)); it.Version != 2 {
			t.Errorf("%s is version %d", it.Key, it.Version)
		}
		enforce(t, fmt.Sprint("t", i), 300, p)
	}
	digests := s.digests()
	want := s.digest(t)
	for _, d := range digests[max(0, len(digests)-3):] {
		if d != want {
			t.Errorf("a digest is %+v, and the table %+v", d, want)
		}
	}
	if said := p.get("/readyz"); strings.Contains(said, "limits_error") {
		t.Errorf("/readyz says %s", said)
	}
	if letters := s.onward.read(); len(letters) > 0 {
		t.Errorf("given up: %v\n%s", letters, plane.output())
	}
}
