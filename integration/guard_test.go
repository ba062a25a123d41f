package integration

import (
	"bytes"
	"crypto/md5" // the checksum of messages in SQS
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/limitgate/limitgate/internal/awstest"
)

// guard is a proxy of an emulator. The emulator checks no credentials and refuses no
// call; the guard refuses calls with the errors of AWS.
type guard struct {
	server *httptest.Server
	one    sync.Mutex // held by a conditional write, which the emulator does in two steps

	mu     sync.Mutex // guards the fields below
	check  func(request) refusal
	forge  func() (body string, ok bool) // returns messages to be received before those of the queue, unless nil
	calls  map[string]int                // by operation, since reset
	denied map[string]int                // the refused ones
	keys   map[string]bool               // the access keys of all calls
}

// request is one call of AWS.
type request struct{ operation, key string }

// refusal is the error of a refused call; it is empty for an accepted one.
type refusal struct{ code, message string }

// The refusals of AWS. Services that answer in XML have other codes.
var (
	expiredToken = refusal{"ExpiredTokenException", "The security token included in the request is expired"}
	unknownKey   = refusal{"UnrecognizedClientException", "The security token included in the request is invalid."}
	accessDenied = refusal{"AccessDeniedException", "User: arn:aws:iam::123456789012:user/ann is not authorized to perform this action"}
	codesInXML   = map[string]string{
		"ExpiredTokenException": "ExpiredToken", "UnrecognizedClientException": "InvalidClientTokenId", "AccessDeniedException": "AuthorizationError",
		"ProvisionedThroughputExceededException": "Throttling", "RequestLimitExceeded": "ThrottledException",
	}
)

// startGuard starts a guard before the emulator of a site. The processes of the site use
// it.
func startGuard(s *site) *guard {
	g := &guard{check: func(request) refusal { return refusal{} }}
	g.reset()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.Addr})
	proxy.Transport = g
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of clients that ended before their replies
	g.server = httptest.NewServer(proxy)
	s.tb.Cleanup(g.server.Close)
	s.env = append(s.env, awstest.Endpoint(g.server.URL)...)
	return g
}

// rule makes check decide which calls are refused from now on.
func (g *guard) rule(check func(request) refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.check = check
}

// deny refuses operations, all of them if none is named.
func (g *guard) deny(why refusal, operations ...string) {
	g.rule(func(r request) refusal {
		if len(operations) == 0 || slices.Contains(operations, r.operation) {
			return why
		}
		return refusal{}
	})
}

// reset resets the counts of calls.
func (g *guard) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls, g.denied, g.keys = map[string]int{}, map[string]int{}, map[string]bool{}
}

// RoundTrip refuses a call or passes it on.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	var asked []byte
	if r.Body != nil {
		var err error
		if asked, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(asked))
	}
	_, operation, isJSON := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !isJSON {
		form, _ := url.ParseQuery(string(asked))
		operation = form.Get("Action")
	}
	_, key, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	key, _, _ = strings.Cut(key, "/")
	if why := g.note(request{operation, key}); why.code != "" {
		return why.response(r, isJSON), nil
	}
	if forged := g.forged(operation, asked); forged != nil {
		return response(r, http.StatusOK, "application/x-amz-json-1.0", forged), nil
	}
	if bytes.Contains(asked, []byte(`"ConditionExpression"`)) {
		g.one.Lock()
		defer g.one.Unlock()
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (g *guard) note(r request) refusal {
	g.mu.Lock()
	check := g.check
	g.mu.Unlock()
	why := check(r) // check may wait
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[r.operation]++
	g.keys[r.key] = true
	if why.code != "" {
		g.denied[r.operation]++
	}
	return why
}

// response returns the reply of AWS.
func (why refusal) response(r *http.Request, isJSON bool) *http.Response {
	status, kind := http.StatusBadRequest, "application/x-amz-json-1.0"
	body, _ := json.Marshal(map[string]string{"__type": "com.amazon.coral.service#" + why.code, "message": why.message})
	if !isJSON {
		status, kind = http.StatusForbidden, "text/xml"
		body = fmt.Appendf(nil, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>1</RequestId></ErrorResponse>", codesInXML[why.code], why.message)
	}
	return response(r, status, kind, body)
}

func response(r *http.Request, status int, kind string, body []byte) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}
}

// forgedHandle is the receipt handle of forged messages, which the emulator does not
// know.
const forgedHandle = "forged"

// forged replies to a call about forged messages, and returns nil for others.
func (g *guard) forged(operation string, asked []byte) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	if operation == "DeleteMessageBatch" && bytes.Contains(asked, []byte(`"`+forgedHandle+`"`)) {
		return []byte(`{"Successful":[],"Failed":[]}`)
	}
	if operation != "ReceiveMessage" || g.forge == nil {
		return nil
	}
	var messages []map[string]string
	for range 10 {
		if body, ok := g.forge(); ok {
			messages = append(messages, map[string]string{"MessageId": "1", "ReceiptHandle": forgedHandle, "MD5OfBody": fmt.Sprintf("%x", md5.Sum([]byte(body))), "Body": body})
		}
	}
	if len(messages) == 0 {
		return nil
	}
	answer, _ := json.Marshal(map[string]any{"Messages": messages})
	return answer
}
