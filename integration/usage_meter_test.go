//go:build long

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
	"github.com/limitgate/limitgate/internal/awstest"
)

// meter is a proxy of an emulator that records the calls, and the readers of each shard.
type meter struct {
	server *httptest.Server
	// one is held by a conditional write: an emulator may execute both of two concurrent
	// ones.
	one sync.Mutex

	mu        sync.Mutex          // guards the fields below
	published map[string]bool     // published items, as key and version
	batches   int                 // calls that published items
	received  map[string]int      // calls that received messages of a queue, by its URL
	messages  map[string]int      // those messages
	readings  []*reading          // in the order of their start
	at        map[string]*reading // by the next iterator
	gone      string              // the ARN of a stream that no longer exists
	muted     time.Time           // start of the time in which the emulator does not reply
	unmuted   time.Time           // its end: calls from before it get no reply
}

// reading is one reader of a shard, from its first call to its last one.
type reading struct {
	shard       string
	first, last time.Time
	calls       int
}

// startMeter starts a meter before the emulator of a site.
func startMeter(s *site) *meter {
	m := &meter{
		published: map[string]bool{}, received: map[string]int{}, messages: map[string]int{}, at: map[string]*reading{},
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.Addr})
	proxy.Transport = m
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of clients that ended before their replies
	m.server = httptest.NewServer(proxy)
	s.tb.Cleanup(m.server.Close)
	return m
}

// environment returns the variables that direct a process to the meter, if they come
// after those of the site.
func (m *meter) environment() []string { return awstest.Endpoint(m.server.URL) }

// RoundTrip records a call and its reply.
func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	asked, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(asked))
	if m.isGone(asked) {
		const answer = `{"__type":"ResourceNotFoundException","message":"Requested resource not found: Stream"}`
		return &http.Response{
			StatusCode: http.StatusBadRequest, Header: http.Header{"X-Amzn-Errortype": {"ResourceNotFoundException"}},
			Body: io.NopCloser(strings.NewReader(answer)), Request: r,
		}, nil
	}
	begun := time.Now()
	resp, answered, err := m.pass(r, asked)
	if m.isMuted(begun) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	_, operation, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	form := url.Values{}
	if !ok {
		form, _ = url.ParseQuery(string(asked))
		operation = form.Get("Action")
	}
	m.note(operation, form, asked, answered, begun)
	return resp, nil
}

// pass passes a call to the emulator, and reads its reply.
func (m *meter) pass(r *http.Request, asked []byte) (resp *http.Response, answered []byte, err error) {
	if bytes.Contains(asked, []byte(`"ConditionExpression"`)) {
		m.one.Lock()
		defer m.one.Unlock()
	}
	resp, err = http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, nil, err
	}
	answered, err = io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(answered))
	return resp, answered, err
}

// forget makes the emulator forget a stream and everything that names it, because for the
// emulator one stream is like another.
func (m *meter) forget(arn string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = arn
}

func (m *meter) isGone(asked []byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone != "" && bytes.Contains(asked, []byte(m.gone))
}

// mute suppresses the replies to later and to pending calls until unmute is called. Calls
// from before unmute get no reply afterwards either.
func (m *meter) mute() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.muted = time.Now()
}

func (m *meter) unmute() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unmuted = time.Now()
}

// isMuted reports whether a call that began at an instant gets no reply now.
func (m *meter) isMuted(begun time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.muted.IsZero() && (m.unmuted.IsZero() || begun.Before(m.unmuted))
}

func (m *meter) note(operation string, form url.Values, asked, answered []byte, begun time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var in, out struct {
		QueueURL          string `json:"QueueUrl"`
		ShardID           string `json:"ShardId"`
		ShardIterator     string
		NextShardIterator string
		Messages          []struct{}
	}
	_, _ = json.Unmarshal(asked, &in), json.Unmarshal(answered, &out) // not every body is JSON
	switch operation {
	case "PublishBatch":
		m.recordPublished(form)
	case "ReceiveMessage":
		if n := len(out.Messages); n > 0 {
			m.received[in.QueueURL]++
			m.messages[in.QueueURL] += n
		}
	case "GetShardIterator":
		m.at[out.ShardIterator] = &reading{shard: in.ShardID}
	case "GetRecords":
		r := m.at[in.ShardIterator]
		if r == nil || out.NextShardIterator == "" {
			return
		}
		if r.calls == 0 {
			r.first = begun
			m.readings = append(m.readings, r)
		}
		r.calls++
		r.last = time.Now()
		m.at[out.NextShardIterator] = r
	}
}

// recordPublished records the published items. The caller holds mu.
func (m *meter) recordPublished(form url.Values) {
	items := false
	for i := 1; ; i++ {
		body := form.Get(fmt.Sprintf("PublishBatchRequestEntries.member.%d.Message", i))
		if body == "" {
			break
		}
		var message tables.Message
		if err := json.Unmarshal([]byte(body), &message); err == nil && message.Item != nil {
			m.published[fmt.Sprint(message.Item.Key, message.Item.Version)] = true
			items = true
		}
	}
	if items {
		m.batches++
	}
}

// wasPublished reports whether an item was published.
func (m *meter) wasPublished(it *tables.Item) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.published[fmt.Sprint(it.Key, it.Version)]
}

// batchesPublished returns how often items were published.
func (m *meter) batchesPublished() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.batches
}

// readers returns how many readers there were, and how many of them at the same time.
func (m *meter) readers() (all, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.readings {
		n := 0
		for _, other := range m.readings {
			if other.shard == r.shard && !other.first.After(r.first) && other.last.After(r.first) {
				n++
			}
		}
		most = max(most, n)
	}
	return len(m.readings), most
}

// described describes all readers.
func (m *meter) described() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var text strings.Builder
	for _, r := range m.readings {
		from, took := r.first.Sub(m.readings[0].first), r.last.Sub(r.first)
		fmt.Fprintf(&text, "%d calls in %s, from %s\n", r.calls, took.Round(time.Millisecond), from.Round(time.Millisecond))
	}
	return text.String()
}

// reset resets the counts of messages.
func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches = 0
	clear(m.published)
	clear(m.received)
	clear(m.messages)
}

// publishedItems returns how many items were published.
func (m *meter) publishedItems() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.published)
}

// costs returns how often items were published, how often messages were received from
// each queue, and how many.
func (m *meter) costs() (batches int, received, messages []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.batches, slices.Sorted(maps.Values(m.received)), slices.Sorted(maps.Values(m.messages))
}
