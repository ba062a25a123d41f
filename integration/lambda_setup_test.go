package integration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
)

const (
	// lambdaBatch is the largest number of records in an event, and lambdaRetries how
	// often a failed one is retried.
	lambdaBatch   = 25
	lambdaRetries = 3
)

// lambdaScene is a site whose proxies receive changes from a function, with a censor
// before the topic and its queues.
type lambdaScene struct {
	*site
	censor    *censor
	relay     *function
	published *letterbox // gets the messages of the topic
	dead      *letterbox // gets the dead letters of the function
	onward    *letterbox // gets the failures of its event source mapping
	changer   *changer
	mapping   *mapping // of the relay; nil until it exists
}

// newLambdaScene starts a scene without the mapping, with a plan in the table.
func newLambdaScene(t *testing.T) *lambdaScene {
	t.Helper()
	s := &lambdaScene{site: newSerialSite(t)}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s.changer = &changer{site: s.site, random: rand.New(rand.NewPCG(seed, 1)), raw: dynamodb.NewFromConfig(s.Config)}
	s.censor = startCensor(s.site)
	s.published, s.dead, s.onward = s.letterbox("told"), s.letterbox("dead"), s.letterbox("onward")
	s.published.listen()
	s.relay = s.site.function("relay", append(s.censor.environment(), "LIMITGATE_TABLE=limits", "LIMITGATE_TOPIC="+s.topic, "LIMITGATE_DEAD_LETTERS="+s.dead.url)...)
	s.push(tableLimits(t, ""), "ann")
	s.changer.made = 3 // the shared limits and two plans
	return s
}

// start maps the stream to the relay.
func (s *lambdaScene) start(retries int) {
	s.tb.Helper()
	s.mapping = s.mapStream(s.relay, "limits", lambdaBatch, retries, s.onward.url)
}

// changes makes n changes while the function is busy, so that they arrive in one event.
func (s *lambdaScene) changes(n int) {
	s.relay.one.Lock()
	defer s.relay.one.Unlock()
	for range n {
		s.changer.change()
	}
}

// records returns how many records the stream has when the changes by hand are reverted.
func (s *lambdaScene) records() int { return s.changer.made + s.changer.byHand }

// signed returns the changes of the stream that proxies must receive, as key and version,
// in order.
func (s *lambdaScene) signed() (all []string) {
	s.tb.Helper()
	for _, r := range s.streamRecords() {
		before, after := imageOf(s.tb, r.Dynamodb.OldImage), imageOf(s.tb, r.Dynamodb.NewImage)
		if after != nil && after.Version > 0 && after.Actor != "" && tables.IsKey(after.Key) && (before == nil || after.Version > before.Version) {
			all = append(all, fmt.Sprint(after.Key, " ", after.Version))
		}
	}
	return all
}

// publishedItems returns how often each item was published, as key and version, and all in the
// order of their first publication.
func (s *lambdaScene) publishedItems() (times map[string]int, order []string) {
	s.tb.Helper()
	times = map[string]int{}
	for _, m := range s.published.messages() {
		if m.Item == nil {
			continue
		}
		name := fmt.Sprint(m.Item.Key, " ", m.Item.Version)
		if times[name]++; times[name] == 1 {
			order = append(order, name)
		}
	}
	return times, order
}

// checkPublished checks that all changes were published in order, and no others. It returns
// how many there were, and how often they were published.
func (s *lambdaScene) checkPublished(t *testing.T) (changes, all int) {
	t.Helper()
	times, order := s.publishedItems()
	if want := s.signed(); !slices.Equal(order, want) {
		t.Errorf("published %v\nwant %v\n%s", order, want, s.relay.log())
	}
	for _, n := range times {
		all += n
	}
	return len(order), all
}

var tenantRate = regexp.MustCompile(`"(\d+)/s"`)

// enforced waits until proxies enforce the table's limits of all tenants.
func (s *lambdaScene) enforced(t *testing.T, proxies ...*proxy) {
	t.Helper()
	items, err := s.table.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		if !tables.IsTenant(it.Key) {
			continue
		}
		want := int64(100) // the limit of the default plan
		if found := tenantRate.FindSubmatch(it.Body); found != nil && !it.Deleted {
			_, _ = fmt.Sscan(string(found[1]), &want)
		}
		enforce(t, tables.Name(it.Key), want, proxies...)
	}
}

// digest returns the digest of the table.
func (s *lambdaScene) digest(t *testing.T) (d tables.Digest) {
	t.Helper()
	items, err := s.table.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range items {
		if items[i].IsLimits() {
			d.Add(&items[i])
		}
	}
	return d
}

// digests returns the digests that were published so far.
func (s *lambdaScene) digests() (all []tables.Digest) {
	s.tb.Helper()
	for _, m := range s.published.messages() {
		if m.Digest != nil {
			all = append(all, *m.Digest)
		}
	}
	return all
}

// letter is a dead letter of the function about an unusable item.
type letter struct {
	Key, Sequence, Why string
	After              *auditedImage
}

// deadLetters returns those that arrived so far, by the sequence numbers of their
// changes.
func (s *lambdaScene) deadLetters() map[string]letter {
	s.tb.Helper()
	all := map[string]letter{}
	for _, body := range s.dead.read() {
		var l letter
		if err := json.Unmarshal([]byte(body), &l); err != nil {
			s.tb.Fatalf("%s: %v", body, err)
		}
		all[l.Sequence] = l
	}
	return all
}

// noItems returns invalid items that a person might write into the table by hand.
func noItems() []map[string]types.AttributeValue {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	count := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	return []map[string]types.AttributeValue{
		{"pk": text("note"), "text": text("not to be used")},
		{"pk": text("TENANT#"), "version": count("7"), "updated_by": text("eve"), "updated_at": text("2026-01-02T03:04:05Z"), "body": text(`{"plan":"gold"}`)},
		{"pk": text("TENANT#eve"), "version": text("7"), "updated_by": text("eve"), "updated_at": text("2026-01-02T03:04:05Z"), "body": text(`{"plan":"gold"}`)},
		{"pk": text("TENANT#eve2"), "version": count("7"), "body": text("no JSON at all \x00\"")},
		{"pk": text("TENANT#eve3"), "version": count("0"), "updated_by": text("eve")},
		{
			"pk": text("PLAN#eve"), "version": &types.AttributeValueMemberNULL{Value: true}, "updated_by": &types.AttributeValueMemberSS{Value: []string{"eve"}},
			"updated_at": count("1"), "body": &types.AttributeValueMemberB{Value: []byte{0, 1, 0xff}}, "deleted": &types.AttributeValueMemberBOOL{Value: true},
			"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("x"), &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"y": count("1")}}}},
		},
	}
}

// litter writes those items, and returns their keys.
func (s *lambdaScene) litter() (keys []string) {
	s.tb.Helper()
	for _, item := range noItems() {
		if _, err := s.changer.raw.PutItem(s.tb.Context(), &dynamodb.PutItemInput{TableName: aws.String("limits"), Item: item}); err != nil {
			s.tb.Fatal(err)
		}
		keys = append(keys, item["pk"].(*types.AttributeValueMemberS).Value)
	}
	slices.Sort(keys)
	return keys
}

// checkLetters waits for a letter about each of those keys, with the reason, and checks
// that there is no other.
func (s *lambdaScene) checkLetters(t *testing.T, keys []string) {
	t.Helper()
	var letters map[string]letter
	eventually(t, "each invalid item is a dead letter", func() bool {
		letters = s.deadLetters()
		return len(letters) >= len(keys)
	})
	var named []string
	for sequence, l := range letters {
		named = append(named, l.Key)
		if sequence == "" || !strings.Contains(l.Why, "written by hand") || l.After == nil || l.After.Key != l.Key {
			t.Errorf("a letter says %+v", l)
		}
	}
	if slices.Sort(named); !slices.Equal(named, keys) {
		t.Errorf("letters of %v, want %v", named, keys)
	}
}

// thrice delivers each event of a mapping to its function three more times.
func (m *mapping) thrice(t *testing.T) {
	t.Helper()
	events, _, _ := m.deliveredEvents()
	for _, event := range events {
		for range 3 {
			got, err := m.invoke(t.Context(), event)
			if err != nil || string(got) != `{"batchItemFailures":[]}` {
				t.Fatalf("on a repeated event it returns %s, %v\n%s", got, err, m.log())
			}
		}
	}
	if len(events) == 0 {
		t.Error("there was no event")
	}
}
