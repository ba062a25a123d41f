package awstest

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Relay is a proxy before the tables of an AWS that injects faults of the kinds that
// DynamoDB has. Its fields must not be changed once it is used.
type Relay struct {
	// Throttle is the share of requests that are throttled.
	Throttle float64
	// Lose is the share of requests that are executed, but answered with an internal
	// error.
	Lose float64
	// OneByOne lets one request through at a time.
	OneByOne bool

	// Throttled and Lost count those requests.
	Throttled, Lost atomic.Int64

	one  sync.Mutex
	next http.Handler
}

// Through returns the same AWS with its tables behind a relay, until the test is over.
func (a *AWS) Through(tb testing.TB, r *Relay) *AWS {
	tb.Helper()
	conns := &http.Transport{MaxIdleConnsPerHost: 100}
	tb.Cleanup(conns.CloseIdleConnections)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: a.tables})
	proxy.Transport = conns
	proxy.ErrorLog = log.New(io.Discard, "", 0) // the response has the error
	r.next = proxy
	server := httptest.NewServer(r)
	tb.Cleanup(server.Close)
	return lead(tb, &AWS{Moto: a.Moto, Tables: a.Tables, tables: server.Listener.Addr().String(), key: a.key, account: a.account})
}

// throttles are the throttling errors of DynamoDB: for one table, and for all requests.
var throttles = []string{
	`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"The level of configured provisioned throughput for the table was exceeded."}`,
	`{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Rate of requests exceeds the allowed throughput."}`,
}

const internalError = `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"The request processing has failed because of an unknown error."}`

// ServeHTTP answers or forwards one request.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if rand.Float64() < r.Throttle {
		r.Throttled.Add(1)
		answer(w, http.StatusBadRequest, throttles[rand.IntN(len(throttles))])
		return
	}
	if r.OneByOne {
		r.one.Lock()
		defer r.one.Unlock()
	}
	if rand.Float64() < r.Lose {
		r.Lost.Add(1)
		r.next.ServeHTTP(httptest.NewRecorder(), req)
		answer(w, http.StatusInternalServerError, internalError)
		return
	}
	r.next.ServeHTTP(w, req)
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}
