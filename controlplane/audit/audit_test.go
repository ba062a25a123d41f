package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"github.com/limitgate/limitgate/controlplane/table"
)

// TestNoBucket: the error of a missing bucket has its name and where it was looked for.
func TestNoBucket(t *testing.T) {
	missing := &smithy.GenericAPIError{Code: "NoSuchBucket"}
	for want, config := range map[string]aws.Config{
		`there is no bucket "b" in the region eu-central-1: check its name, AWS_REGION and AWS_PROFILE`: {Region: "eu-central-1"},
		`there is no bucket "b" in the region eu-central-1 at http://127.0.0.1:5566: check its name, AWS_REGION, AWS_PROFILE and AWS_ENDPOINT_URL`: {
			Region: "eu-central-1", BaseEndpoint: aws.String("http://user:secret@127.0.0.1:5566"),
		},
	} {
		if err := NewBucket(config, "b").plain(missing); err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCheckBucket: a bucket that does not exist is an error, and one that S3 does not show is none.
func TestCheckBucket(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK: "", http.StatusForbidden: "", http.StatusBadRequest: "",
		http.StatusNotFound: `look for the bucket of the audit: there is no bucket "b" in the region eu-central-1 at http://127.0.0.1:`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodHead || r.URL.Path != "/b" {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			w.WriteHeader(status)
		}))
		defer server.Close()
		config := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}}
		if err := NewBucket(config, "b").Check(t.Context()); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// refusing is an archive that takes nothing, and records of one change.
type refusing struct{ tape }

func (r *refusing) Create(context.Context, string, []byte) (bool, error) { return false, errShelf }
func (r *refusing) Read(context.Context, string) ([][]byte, error)       { return nil, nil }

// TestLogWhileTheBucketIsAway: a failure that lasts is logged each minute.
func TestLogWhileTheBucketIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		away := &refusing{tape{records: []table.Record{{Sequence: "1", After: item(1, "me", false)}}}}
		w := Writer{Records: away, Archive: away, Log: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		_ = w.Run(ctx)
		if n := strings.Count(log.String(), "level=ERROR"); n != 3 {
			t.Errorf("in two and a half minutes %d errors are logged\n%s", n, &log)
		}
	})
}

func item(version int64, actor string, deleted bool) *table.Item {
	it := &table.Item{Key: "TENANT#a/b", Version: version, Actor: actor, At: time.Date(2026, 1, 2, 3, 4, int(version), 0, time.UTC), Deleted: deleted}
	if !deleted {
		it.Body = json.RawMessage(fmt.Sprintf(`{"plan":"p%d"}`, version))
	}
	return it
}

// TestEntries: a change with a new version has its actor; all others have Unknown.
func TestEntries(t *testing.T) {
	for _, row := range []struct {
		what          string
		before, after *table.Item
		actor         string
		version       int64
		none          bool
	}{
		{"created", nil, item(1, "me", false), "me", 1, false},
		{"changed", item(1, "me", false), item(2, "you", false), "you", 2, false},
		{"a tombstone", item(2, "me", false), item(3, "you", true), "you", 3, false},
		{"made again", item(3, "me", true), item(4, "you", false), "you", 4, false},
		{"the same version", item(2, "me", false), item(2, "you", false), Unknown, 2, false},
		{"an older version", item(3, "me", false), item(2, "you", false), Unknown, 2, false},
		{"no actor", item(1, "me", false), item(2, "", false), Unknown, 2, false},
		{"deleted by hand", item(5, "me", false), nil, Unknown, 5, false},
		{"a tombstone's end", item(5, "me", true), nil, "", 0, true},
	} {
		e, ok := NewEntry(&table.Record{Sequence: "77", Before: row.before, After: row.after}, time.Now())
		if ok == row.none {
			t.Errorf("%s: an entry = %v", row.what, ok)
		}
		if ok && (e.Actor != row.actor || e.Version != row.version || e.Key != "TENANT#a/b" || e.At.IsZero()) {
			t.Errorf("%s: %+v", row.what, e)
		}
		if name := e.Name(); ok && (strings.Count(name, "/") != 1 || !strings.HasPrefix(name, Prefix("TENANT#a/b"))) {
			t.Errorf("%s: its object is called %s", row.what, name)
		}
	}
}

// shelf is an archive in memory that fails now and then, before or after it has
// written.
type shelf struct {
	mu      sync.Mutex // guards the fields below
	objects map[string]string
	writes  int
	random  *rand.Rand
}

var errShelf = errors.New("the shelf is out of order")

func (s *shelf) Create(_ context.Context, name string, body []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.random.IntN(10) == 0 {
		return false, errShelf
	}
	if _, there := s.objects[name]; there {
		return false, nil
	}
	s.objects[name] = string(body)
	s.writes++
	if s.random.IntN(10) == 0 {
		return true, errShelf
	}
	return true, nil
}

func (s *shelf) Read(_ context.Context, prefix string) (bodies [][]byte, err error) {
	var names []string
	for name := range s.objects {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		bodies = append(bodies, []byte(s.objects[name]))
	}
	return bodies, nil
}

// tape returns records, a few at a time, and after a restart continues after the last
// Done.
type tape struct {
	records     []table.Record
	at, pending int
	end         func()
}

func (p *tape) Next(context.Context) ([]table.Record, error) {
	p.pending = min(p.at+7, len(p.records))
	if p.at == len(p.records) {
		p.end()
	}
	return p.records[p.at:p.pending], nil
}

func (p *tape) Done(context.Context) error { p.at = p.pending; return nil }

// TestExactlyOne: each of a thousand changes is one object, in the order of its item,
// although writers fail, end and restart.
func TestExactlyOne(t *testing.T) {
	var records []table.Record
	for i := range 1000 {
		records = append(records, table.Record{Sequence: fmt.Sprint(100_000 + i), Before: item(int64(i), "me", false), After: item(int64(i+1), "me", false)})
	}
	s := &shelf{objects: map[string]string{}, random: rand.New(rand.NewPCG(1, 2))}
	log := slog.New(slog.DiscardHandler)
	written := &tape{records: records}
	for written.at < len(records) {
		ctx, end := context.WithCancel(t.Context())
		written.end = end
		w := Writer{Records: written, Archive: s, Table: "limits", Log: log}
		for range 20 { // then another one continues, some records back
			_ = w.write(ctx)
		}
		if written.at < len(records) {
			written.at = max(0, written.at-s.random.IntN(30))
		}
		end()
	}
	if len(s.objects) != 1000 || s.writes != 1000 {
		t.Errorf("%d objects after %d writes of 1000 changes", len(s.objects), s.writes)
	}
	got, err := History(t.Context(), s, "TENANT#a/b")
	if err != nil || len(got) != 1000 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i := range got {
		if want := records[i]; got[i].Table != "limits" || got[i].Sequence != want.Sequence || got[i].Version != want.After.Version || string(got[i].After.Body) != string(want.After.Body) {
			t.Fatalf("entry %d is %+v, want %+v", i, got[i], want)
		}
	}
}

// TestWriteByHand: a write by hand is an error in the log only if it changes limits.
func TestWriteByHand(t *testing.T) {
	edited := item(1, "me", false)
	edited.Body = json.RawMessage(`{"plan":"gold"}`)
	for want, after := range map[string]*table.Item{
		`level=ERROR msg="item changed without an actor" key=TENANT#a/b version=1 advice="the item was written or deleted by hand`: edited,
		`level=INFO msg="item written by hand, and its limits are as they were" key=TENANT#a/b version=1`:                          item(1, "me", false),
		`level=ERROR msg="item changed without an actor" key=TENANT#a/b version=1 advice=`:                                         item(1, "", false), // which proxies refuse
	} {
		var log strings.Builder
		w := Writer{Archive: &shelf{objects: map[string]string{}, random: rand.New(rand.NewPCG(3, 4))}, Log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 20 { // the archive fails now and then
			if w.writeOne(t.Context(), &table.Record{Sequence: "7", Before: item(1, "me", false), After: after}) == nil {
				break
			}
		}
		if got := log.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestHistoryInOrder: a write by hand is listed when it happened, whatever its version,
// and so is an item that is created again with version 1 after its tombstone expired.
func TestHistoryInOrder(t *testing.T) {
	s := &shelf{objects: map[string]string{}}
	bare := item(0, "", false)
	changes := []struct{ before, after *table.Item }{
		{nil, item(1, "me", false)},
		{item(1, "me", false), item(2, "me", false)},
		{item(2, "me", false), bare},
		{bare, item(3, "control-plane", false)},
		{item(3, "control-plane", false), nil},
		{nil, item(1, "me", false)},
	}
	var want []string
	for i, c := range changes {
		e, _ := NewEntry(&table.Record{Sequence: strconv.Itoa(8+i) + "00000000000000000000", Before: c.before, After: c.after}, time.Now())
		body, err := json.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		s.objects[e.Name()] = string(body)
		want = append(want, e.Sequence)
	}
	entries, err := History(t.Context(), s, "TENANT#a/b")
	var got []string
	for _, e := range entries {
		got = append(got, e.Sequence)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
