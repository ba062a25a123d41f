package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// recorder is a handler that stores the records it receives, and fails at a chosen one.
type recorder struct {
	received []table.Record
	ticks    int
	fails    int // the record that fails, -1 for none
	err      error
}

func (r *recorder) records(_ context.Context, records []table.Record) (int, error) {
	r.received = append(r.received, records...)
	if r.fails >= 0 {
		return r.fails, r.err
	}
	return len(records), nil
}

func (r *recorder) tick(context.Context) error {
	r.ticks++
	return r.err
}

// answer passes an event to a handler, and returns the response that AWS gets.
func answer(t *testing.T, r *recorder, event string) (response string, err error) {
	t.Helper()
	got, err := handle(t.Context(), r, json.RawMessage(event), slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), nil
}

// record returns a record of an event.
func record(name, sequence, images string) string {
	return fmt.Sprintf(`{
		"eventID": "f07f8ca4b0b26cb9c4e5e77e69f274ee", "eventName": %q, "eventVersion": "1.1", "eventSource": "aws:dynamodb", "awsRegion": "eu-central-1",
		"dynamodb": {
			"ApproximateCreationDateTime": 1480642020.5, "Keys": {"pk": {"S": "TENANT#acme"}}, %s
			"SequenceNumber": %q, "SizeBytes": 54, "StreamViewType": "NEW_AND_OLD_IMAGES"
		},
		"eventSourceARN": "arn:aws:dynamodb:eu-central-1:123456789012:table/limits/stream/2026-01-02T00:00:00.000"
	}`, name, images, sequence)
}

// batch returns an event of records.
func batch(records ...string) string { return `{"Records": [` + strings.Join(records, ",") + `]}` }

// The images of an item: two versions and its tombstone.
const (
	first    = `{"pk": {"S": "TENANT#acme"}, "version": {"N": "1"}, "updated_by": {"S": "ann"}, "updated_at": {"S": "2026-01-02T03:04:05.000000678Z"}, "body": {"S": "{\"plan\":\"free\"}"}}`
	second   = `{"pk": {"S": "TENANT#acme"}, "version": {"N": "2"}, "updated_by": {"S": "bob"}, "updated_at": {"S": "2026-01-02T03:04:06Z"}, "body": {"S": "{\"plan\":\"gold\"}"}}`
	tomb     = `{"pk": {"S": "TENANT#acme"}, "version": {"N": "3"}, "updated_by": {"S": "bob"}, "updated_at": {"S": "2026-01-02T03:04:07Z"}, "deleted": {"BOOL": true}, "expires_at": {"N": "1769915047"}}`
	inserted = `"NewImage": ` + first + `,`
)

// itemOfVersion returns one of these as it is decoded.
func itemOfVersion(version int64) *table.Item {
	it := table.Item{Key: "TENANT#acme", Version: version, Actor: "bob", At: time.Date(2026, 1, 2, 3, 4, 4+int(version), 0, time.UTC)}
	switch version {
	case 1:
		it.Actor, it.Body, it.At = "ann", json.RawMessage(`{"plan":"free"}`), it.At.Add(678)
	case 2:
		it.Body = json.RawMessage(`{"plan":"gold"}`)
	case 3:
		it.Deleted = true
	}
	return &it
}

// TestRecordsOfAnEvent: changes are read from events as AWS documents them.
func TestRecordsOfAnEvent(t *testing.T) {
	expired := strings.Replace(record("REMOVE", "1405400000000002063282835", `"OldImage": `+tomb+`,`),
		`"eventVersion"`, `"userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}, "eventVersion"`, 1)
	for _, c := range []struct {
		name, event     string
		want            table.Record
		signed, expired bool // an expired record needs no handling
	}{
		{"made", record("INSERT", "1405400000000002063282832", inserted), table.Record{Sequence: "1405400000000002063282832", After: itemOfVersion(1)}, true, false},
		{
			"changed", record("MODIFY", "1405400000000002063282833", `"OldImage": `+first+`, "NewImage": `+second+`,`),
			table.Record{Sequence: "1405400000000002063282833", Before: itemOfVersion(1), After: itemOfVersion(2)},
			true, false,
		},
		{
			"deleted with a tombstone", record("MODIFY", "7", `"OldImage": `+second+`, "NewImage": `+tomb+`,`),
			table.Record{Sequence: "7", Before: itemOfVersion(2), After: itemOfVersion(3)},
			true, false,
		},
		{"deleted by hand", record("REMOVE", "8", `"OldImage": `+second+`,`), table.Record{Sequence: "8", Before: itemOfVersion(2)}, false, false},
		{"a tombstone whose time was up", expired, table.Record{Sequence: "1405400000000002063282835", Before: itemOfVersion(3)}, false, true},
		{"no images", record("MODIFY", "9", ""), table.Record{Sequence: "9"}, false, true},
		{"empty images", record("MODIFY", "9", `"OldImage": {}, "NewImage": {},`), table.Record{Sequence: "9"}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{fails: -1}
			if got, err := answer(t, r, batch(c.event)); err != nil || got != `{"batchItemFailures":[]}` {
				t.Errorf("answer %s, %v", got, err)
			}
			if r.ticks != 0 || len(r.received) != 1 || !reflect.DeepEqual(r.received[0], c.want) {
				t.Fatalf("received %+v, %d ticks; want %+v", r.received, r.ticks, c.want)
			}
			if got := r.received[0].Versioned(); got != c.signed {
				t.Errorf("signed %t, want %t", got, c.signed)
			}
			if got := r.received[0].Expired(); got != c.expired {
				t.Errorf("expired %t, want %t", got, c.expired)
			}
		})
	}
}

// TestAttributesOfOtherTypes: an item written by hand with attributes of other types is
// decoded, and is not an item of limits.
func TestAttributesOfOtherTypes(t *testing.T) {
	image := `"NewImage": {
		"pk": {"S": "TENANT#acme"}, "version": {"S": "2"}, "updated_by": {"SS": ["ann", "bob"]}, "updated_at": {"NULL": true}, "body": {"B": "AAEqQQ=="},
		"deleted": {"N": "1"}, "BinarySet": {"BS": ["AAEqQQ==", "QSoBAA=="]}, "List": {"L": [{"S": "Cookies"}, {"N": "3.14159"}, {"L": []}]},
		"Map": {"M": {"Name": {"S": "Joe"}, "Deep": {"M": {}}}}, "NumberSet": {"NS": ["1234", "567.8"]}, "Empty": {"S": ""}
	},`
	r := &recorder{fails: -1}
	if got, err := answer(t, r, batch(record("INSERT", "1", image), record("INSERT", "2", inserted))); err != nil || got != `{"batchItemFailures":[]}` {
		t.Fatalf("answer %s, %v", got, err)
	}
	want := table.Record{Sequence: "1", After: &table.Item{Key: "TENANT#acme"}}
	if len(r.received) != 2 || !reflect.DeepEqual(r.received[0], want) || !r.received[1].Versioned() {
		t.Errorf("received %+v, want %+v and one with an actor", r.received, want)
	}
	if r.received[0].After.IsLimits() {
		t.Error("it is an item of limits")
	}
}

// TestFirstFailure: AWS continues from the first record that is not processed, so it
// sends all records after that one again.
func TestFirstFailure(t *testing.T) {
	event := batch(record("INSERT", "101", inserted), record("INSERT", "99", inserted), record("INSERT", "103", inserted))
	for done, sequence := range []string{"101", "99", "103"} {
		r := &recorder{fails: done, err: errors.New("no topic")}
		want := fmt.Sprintf(`{"batchItemFailures":[{"itemIdentifier":%q}]}`, sequence)
		if got, err := answer(t, r, event); err != nil || got != want {
			t.Errorf("after %d records the answer is %s, %v; want %s", done, got, err, want)
		}
	}
}

// TestSchedule: an event without records comes from a schedule. A failure is returned to
// AWS, which sends the event again.
func TestSchedule(t *testing.T) {
	scheduled := `{
		"version": "0", "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa", "detail-type": "Scheduled Event", "source": "aws.events", "account": "123456789012",
		"time": "2026-01-02T03:04:05Z", "region": "eu-central-1", "resources": ["arn:aws:events:eu-central-1:123456789012:rule/limits"], "detail": {}
	}`
	for _, event := range []string{scheduled, `{}`, `{"Records": []}`, `{"Records": null}`, `null`} {
		r := &recorder{fails: -1}
		if got, err := answer(t, r, event); err != nil || got != `{"batchItemFailures":[]}` || r.ticks != 1 || len(r.received) != 0 {
			t.Errorf("%s: answer %s, %v after %d ticks and %v", event, got, err, r.ticks, r.received)
		}
	}
	r := &recorder{fails: -1, err: errors.New("no table")}
	if _, err := answer(t, r, scheduled); !errors.Is(err, r.err) {
		t.Errorf("error %v, want %v", err, r.err)
	}
}

// TestNoEvent: an invalid event is an error, and no record is processed.
func TestNoEvent(t *testing.T) {
	for _, event := range []string{``, `[]`, `"Records"`, `{"Records": 7}`, batch(record("INSERT", "1", `"NewImage": {"pk": {"X": "y"}},`)), batch(record("INSERT", "1", `"NewImage": {"pk": {}},`))} {
		r := &recorder{fails: -1}
		if got, err := answer(t, r, event); err == nil || r.ticks+len(r.received) > 0 {
			t.Errorf("%s: answer %s after %d ticks and %v", event, got, r.ticks, r.received)
		}
	}
}
