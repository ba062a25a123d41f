//go:build long

package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	// unusableRecords is the number of written items that are not limits.
	unusableRecords = 1000
	// restoreTime bounds how long an item that was deleted by hand may be missing behind
	// them. A proxy keeps its limits for half a minute after it has missed it.
	restoreTime = 45 * time.Second
	// planeMemory bounds how much more memory a control plane may use for them.
	planeMemory = 40 << 20
)

// TestLongTableDeadLetters: unusable records delay no change and no revert behind them,
// whatever the state of the dead-letter queue.
func TestLongTableDeadLetters(t *testing.T) {
	for name, url := range map[string]func(s *site, g *guard) string{
		"kept": func(s *site, _ *guard) string {
			made, err := sqs.NewFromConfig(s.Config).CreateQueue(context.Background(), &sqs.CreateQueueInput{QueueName: aws.String("dead")})
			if err != nil {
				s.tb.Fatal(err)
			}
			return *made.QueueUrl
		},
		"missing": func(s *site, _ *guard) string { return "http://" + s.Addr + "/123456789012/nowhere" },
		"refused": func(_ *site, g *guard) string {
			g.deny(accessDenied, "SendMessage")
			return g.server.URL + "/123456789012/dead"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deadLetters(t, url)
		})
	}
}

func deadLetters(t *testing.T, url func(*site, *guard) string) {
	s := newSite(t)
	s.push(tableLimits(t, "acme: {plan: free}, gone: {plan: gold}"), "ann")
	people := *s
	g := startGuard(s)
	plane := s.controlPlane("--dead-letters", url(s, g))
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"))
	people.push(tableLimits(t, "acme: {plan: gold}, gone: {plan: gold}"), "ann")
	enforce(t, "acme", 1000, p)
	memory, lines := plane.resident(), plane.logged()
	g.reset()
	s.deleteBehind(t, unusableRecords, func() { people.push(tableLimits(t, "acme: {plan: free}, gone: {plan: gold}"), "bob") })
	begun, c := time.Now(), p.client()
	var bites, restored time.Duration
	for bites == 0 || restored == 0 {
		since := time.Since(begun)
		if got, err := check(c, "acme", "-", "-"); err != nil {
			t.Fatal(err)
		} else if got.limit == 100 && bites == 0 {
			bites = since
		}
		if got, err := check(c, "gone", "-", "-"); err != nil || got.limit != 1000 {
			t.Fatalf("after %s the proxy gives what was deleted by hand %d, %v", since, got.limit, err)
		}
		if _, ok, err := s.table.Get(t.Context(), "TENANT#gone"); err == nil && ok && restored == 0 {
			restored = since
		}
		if since > restoreTime {
			t.Fatalf("the change bites after %s and the item is restored after %s: unusable records hold them up\n%.3000s", bites, restored, plane.output())
		}
		pause(100 * time.Millisecond)
	}
	calls, _ := g.counts()
	t.Logf("the change bites after %s, the item is restored after %s; memory %d MB, then %d MB; %d lines; calls %v", bites, restored, memory>>20, plane.resident()>>20, plane.logged()-lines, calls)
	if more := plane.resident() - memory; more > planeMemory {
		t.Errorf("the control plane takes %d MB more", more>>20)
	}
	if n := plane.logged() - lines; n > unusableRecords+100 { // one for each, the only trace of them without a queue
		t.Errorf("it logs %d lines", n)
	}
}

// deleteBehind writes items by hand that are not limits, runs write, and deletes an item
// by hand.
func (s *site) deleteBehind(t *testing.T, unusable int, write func()) {
	t.Helper()
	client, name := dynamodb.NewFromConfig(s.Config), "limits"
	for i := range unusable {
		item := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: fmt.Sprint("note", i)}}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	write()
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "TENANT#gone"}}
	if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &name, Key: key}); err != nil {
		t.Fatal(err)
	}
}
