//go:build long

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/awstest"
)

// splitStream is a proxy of an emulator whose stream has one shard, and presents its
// records in several shards. A shard that is split is closed, and has two children, each
// with the later records of its keys. DescribeStream returns one shard at a time.
type splitStream struct {
	server *httptest.Server
	next   http.Handler
	addr   string     // of the emulator
	one    sync.Mutex // held by a conditional write, which an emulator does in two steps

	mu     sync.Mutex // guards the fields below
	shards []*splitShard
	read   map[string]int // calls of GetRecords by shard
}

// splitShard is one of its shards. The shard of a key is found from the first one on, by
// a bit of the key's hash for each generation.
type splitShard struct {
	id, parent string
	children   []*splitShard
	records    []json.RawMessage
}

// startSplitStream starts a splitStream with one shard before the emulator of a site.
func startSplitStream(t *testing.T, s *site) *splitStream {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.Addr})
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of clients that ended before their replies
	x := &splitStream{next: proxy, addr: s.Addr, read: map[string]int{}, shards: []*splitShard{{id: "shardId-00000000000000000000-0"}}}
	x.server = httptest.NewServer(x)
	t.Cleanup(x.server.Close)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { x.collect(t, stop) })
	t.Cleanup(func() {
		close(stop)
		wg.Wait()
	})
	return x
}

// environment returns the variables that direct a process to it, if they come after those
// of the site.
func (x *splitStream) environment() []string { return awstest.Endpoint(x.server.URL) }

// ask calls the emulator directly.
func (x *splitStream) ask(service, operation string, in map[string]any) (out map[string]json.RawMessage, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+x.addr, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Amz-Target", service+"."+operation)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=awstest/20260101/eu-central-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%s: %s %s", operation, resp.Status, text)
	}
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

const streamsService = "DynamoDBStreams_20120810"

// collect reads the emulator's only shard until it is stopped.
func (x *splitStream) collect(t *testing.T, stop chan struct{}) {
	var described struct {
		LatestStreamArn string
	}
	var stream struct {
		Shards []struct{ ShardID string }
	}
	out, err := x.ask("DynamoDB_20120810", "DescribeTable", map[string]any{"TableName": "limits"})
	if err == nil {
		err = json.Unmarshal(out["Table"], &described)
	}
	if err == nil {
		out, err = x.ask(streamsService, "DescribeStream", map[string]any{"StreamArn": described.LatestStreamArn})
	}
	if err == nil {
		err = json.Unmarshal(out["StreamDescription"], &stream)
	}
	if err == nil {
		out, err = x.ask(streamsService, "GetShardIterator", map[string]any{"StreamArn": described.LatestStreamArn, "ShardId": stream.Shards[0].ShardID, "ShardIteratorType": "TRIM_HORIZON"})
	}
	iterator := ""
	if err == nil {
		err = json.Unmarshal(out["ShardIterator"], &iterator)
	}
	for err == nil {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		var records []json.RawMessage
		if out, err = x.ask(streamsService, "GetRecords", map[string]any{"ShardIterator": iterator}); err != nil {
			break
		}
		if err = json.Unmarshal(out["Records"], &records); err == nil {
			err = json.Unmarshal(out["NextShardIterator"], &iterator)
		}
		x.add(records)
	}
	t.Errorf("the stream of the emulator cannot be read: %v", err)
}

// recordHead is the part of a record that determines its shard.
type recordHead struct {
	Dynamodb struct {
		Keys           map[string]struct{ S string }
		SequenceNumber string
	} `json:"dynamodb"`
}

func headOf(record json.RawMessage) (h recordHead) {
	_ = json.Unmarshal(record, &h)
	return h
}

// add puts records into the shards of their keys.
func (x *splitStream) add(records []json.RawMessage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range records {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(headOf(r).Dynamodb.Keys["pk"].S))
		sh := x.shards[0]
		for bits := hash.Sum32(); len(sh.children) > 0; bits >>= 1 {
			sh = sh.children[bits&1]
		}
		sh.records = append(sh.records, r)
	}
}

// split closes the nth shard, which has two children from then on.
func (x *splitStream) split(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	parent := x.shards[n]
	for range 2 {
		child := &splitShard{id: fmt.Sprintf("shardId-00000000000000000000-%d", len(x.shards)), parent: parent.id}
		parent.children, x.shards = append(parent.children, child), append(x.shards, child)
	}
}

// sizes returns how many records each shard has, and how often it was read.
func (x *splitStream) sizes() (said string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, sh := range x.shards {
		said += fmt.Sprintf("shard %d of %.40s: %d records, read %d times\n", i, sh.parent, len(sh.records), x.read[sh.id])
	}
	return said
}

// ServeHTTP replies to the calls of the stream, and passes on all others.
func (x *splitStream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), streamsService+".")
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(asked))
	if !ok {
		if bytes.Contains(asked, []byte(`"ConditionExpression"`)) {
			x.one.Lock()
			defer x.one.Unlock()
		}
		x.next.ServeHTTP(w, r)
		return
	}
	var in struct {
		StreamArn, ExclusiveStartShardID, ShardID, ShardIteratorType, SequenceNumber, ShardIterator string
		Limit                                                                                       int
	}
	_ = json.Unmarshal(asked, &in)
	x.mu.Lock()
	defer x.mu.Unlock()
	var out any
	switch operation {
	case "DescribeStream":
		out = x.describe(in.StreamArn, in.ExclusiveStartShardID)
	case "GetShardIterator":
		at := 0
		if in.ShardIteratorType == "AFTER_SEQUENCE_NUMBER" {
			at = x.shard(in.ShardID).behind(in.SequenceNumber)
		}
		out = map[string]any{"ShardIterator": fmt.Sprint(in.ShardID, "|", at)}
	case "GetRecords":
		out = x.records(in.ShardIterator, in.Limit)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(out)
}

// describe returns the shard behind another one. The caller holds mu.
func (x *splitStream) describe(arn, after string) any {
	i := 0
	for after != "" && x.shards[i].id != after {
		i++
	}
	if after != "" {
		i++
	}
	description := map[string]any{"StreamArn": arn, "StreamStatus": "ENABLED", "Shards": []any{}}
	if i < len(x.shards) {
		shard := map[string]any{"ShardId": x.shards[i].id, "SequenceNumberRange": map[string]any{"StartingSequenceNumber": "1"}}
		if parent := x.shards[i].parent; parent != "" {
			shard["ParentShardId"] = parent
		}
		description["Shards"] = []any{shard}
	}
	if i < len(x.shards)-1 {
		description["LastEvaluatedShardId"] = x.shards[i].id
	}
	return map[string]any{"StreamDescription": description}
}

// shard returns the shard with an id. The caller holds mu.
func (x *splitStream) shard(id string) *splitShard {
	for _, sh := range x.shards {
		if sh.id == id {
			return sh
		}
	}
	return &splitShard{}
}

// behind returns the index of the first record behind a sequence number.
func (sh *splitShard) behind(sequence string) int {
	for i, r := range sh.records {
		if headOf(r).Dynamodb.SequenceNumber == sequence {
			return i + 1
		}
	}
	return 0
}

// records returns the records from an iterator on. The caller holds mu.
func (x *splitStream) records(iterator string, most int) any {
	id, number, _ := strings.Cut(iterator, "|")
	at, _ := strconv.Atoi(number)
	sh := x.shard(id)
	x.read[id]++
	end := len(sh.records)
	if most > 0 {
		end = min(end, at+most)
	}
	out := map[string]any{"Records": sh.records[at:end:end]}
	if end < len(sh.records) || len(sh.children) == 0 {
		out["NextShardIterator"] = fmt.Sprint(id, "|", end)
	}
	return out
}
