package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
	"github.com/limitgate/limitgate/internal/awstest"
)

// ruling is the decision of a censor about a call.
type ruling int

const (
	letThrough ruling = iota
	refused           // it is not executed
	answerLost        // it is executed, and the reply is an error
	halved            // the latter half of a batch to publish is refused
)

// censor is a proxy of the emulator that rules on each call.
type censor struct {
	server *httptest.Server
	others *httputil.ReverseProxy
	tables *httputil.ReverseProxy

	mu    sync.Mutex // guards the fields below
	rule  func(operation string, n int) ruling
	calls map[string]int // by operation
}

// startCensor starts a censor that passes all calls.
func startCensor(s *site) *censor {
	c := &censor{calls: map[string]int{}, others: passOn(s.Addr), tables: passOn(s.TablesAddr())}
	c.server = httptest.NewServer(c)
	s.tb.Cleanup(c.server.Close)
	return c
}

// passOn passes calls on to an address.
func passOn(addr string) *httputil.ReverseProxy {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	p.ErrorLog = log.New(io.Discard, "", 0) // of clients that ended before their replies
	return p
}

// environment returns the variables that direct a process to the censor, if they come
// after those of the site.
func (c *censor) environment() []string { return awstest.Endpoint(c.server.URL) }

// by makes rule decide about calls, given the operation and how many calls of it there
// have been since.
func (c *censor) by(rule func(operation string, n int) ruling) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rule = rule
	clear(c.calls)
}

func (c *censor) check(operation string) ruling {
	c.mu.Lock()
	c.calls[operation]++
	rule, n := c.rule, c.calls[operation]
	c.mu.Unlock()
	if rule == nil {
		return letThrough
	}
	return rule(operation, n)
}

// ServeHTTP replies to a call or passes it on. Its operation is Action in a form;
// otherwise the header or the method names it.
func (c *censor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	next := c.others
	service, operation, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if strings.HasPrefix(service, "DynamoDB") {
		next = c.tables
	}
	form, err := url.ParseQuery(string(body))
	switch {
	case ok:
	case err == nil && form.Get("Action") != "":
		operation = form.Get("Action")
	default:
		operation = r.Method
	}
	switch c.check(operation) {
	case refused:
		w.WriteHeader(http.StatusInternalServerError)
	case answerLost:
		next.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusInternalServerError)
	case halved:
		c.halve(w, r, form)
	default:
		next.ServeHTTP(w, r)
	}
}

// halve publishes the first half of a batch, or its only message, and refuses the rest.
func (c *censor) halve(w http.ResponseWriter, r *http.Request, form url.Values) {
	const prefix = "PublishBatchRequestEntries.member."
	var ids []string
	for form.Has(prefix + fmt.Sprint(len(ids)+1) + ".Id") {
		ids = append(ids, form.Get(prefix+fmt.Sprint(len(ids)+1)+".Id"))
	}
	kept := (len(ids) + 1) / 2
	for name := range form {
		var n int
		if _, err := fmt.Sscanf(name, prefix+"%d.", &n); err == nil && n > kept {
			form.Del(name)
		}
	}
	body := form.Encode()
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	c.others.ServeHTTP(httptest.NewRecorder(), r)
	answer := `<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult><Successful>`
	for _, id := range ids[:kept] {
		answer += "<member><Id>" + id + "</Id><MessageId>94f20ce6-13c5-43a0-9a9e-ca52d816e90b</MessageId></member>"
	}
	answer += "</Successful><Failed>"
	for _, id := range ids[kept:] {
		answer += "<member><Id>" + id + "</Id><Code>InternalError</Code><Message>try again</Message><SenderFault>false</SenderFault></member>"
	}
	w.Header().Set("Content-Type", "text/xml")
	_, _ = io.WriteString(w, answer+"</Failed></PublishBatchResult></PublishBatchResponse>")
}

// letterbox is a queue that a test reads. It keeps all messages that it has read.
type letterbox struct {
	site   *site
	client *sqs.Client
	url    string
	bodies []string
}

func (s *site) letterbox(name string) *letterbox {
	s.tb.Helper()
	l := &letterbox{site: s, client: sqs.NewFromConfig(s.Config)}
	made, err := l.client.CreateQueue(s.tb.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		s.tb.Fatal(err)
	}
	l.url = *made.QueueUrl
	return l
}

// listen subscribes it to the topic.
func (l *letterbox) listen() {
	l.site.tb.Helper()
	ctx := l.site.tb.Context()
	got, err := l.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &l.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	if err == nil {
		_, err = sns.NewFromConfig(l.site.Config).Subscribe(ctx, &sns.SubscribeInput{
			TopicArn: &l.site.topic, Protocol: aws.String("sqs"), Endpoint: aws.String(got.Attributes["QueueArn"]),
			Attributes: map[string]string{"RawMessageDelivery": "true"},
		})
	}
	if err != nil {
		l.site.tb.Fatal(err)
	}
}

// read returns all messages so far.
func (l *letterbox) read() []string {
	l.site.tb.Helper()
	ctx := l.site.tb.Context()
	for {
		got, err := l.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &l.url, MaxNumberOfMessages: relayBatch})
		if err != nil {
			l.site.tb.Fatal(err)
		}
		if len(got.Messages) == 0 {
			return l.bodies
		}
		for _, m := range got.Messages {
			l.bodies = append(l.bodies, *m.Body)
			if _, err := l.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &l.url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				l.site.tb.Fatal(err)
			}
		}
	}
}

// messages returns the messages of the topic so far.
func (l *letterbox) messages() []tables.Message {
	l.site.tb.Helper()
	bodies := l.read()
	all := make([]tables.Message, len(bodies))
	for i, body := range bodies {
		if err := json.Unmarshal([]byte(body), &all[i]); err != nil {
			l.site.tb.Fatalf("%s: %v", body, err)
		}
	}
	return all
}
