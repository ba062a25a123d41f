package envoy

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/internal/grpcserver"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// callOf makes a call of a request, as request makes it.
func callOf(t testing.TB, domain, descriptors string, hits uint32) *grpcserver.Call {
	t.Helper()
	wire, err := proto.Marshal(request(t, domain, descriptors, hits))
	if err != nil {
		t.Fatal(err)
	}
	return &grpcserver.Call{Message: wire}
}

// describeCall describes the answer to a call.
func describeCall(t testing.TB, call *grpcserver.Call) string {
	t.Helper()
	if call.Err != nil {
		return call.Err.Error()
	}
	var resp rls.RateLimitResponse
	if err := proto.Unmarshal(call.Reply, &resp); err != nil {
		t.Fatal(err)
	}
	return describeResponse(&resp)
}

// TestRound: requests of all kinds that arrive together get the answers that they get alone, each its own.
func TestRound(t *testing.T) {
	round := []struct{ domain, descriptors string }{
		{"mesh", "a=1"},
		{"mesh", "b=2"},
		{"", "a=1"},
		{"mesh", "vip=3 hits=7"},
		{"plans", "tenant=x"},
		{"mesh", "a=4,b=4,zero=1"},
		{"mesh", "free=x"},
		{"other", "a=5"},
		{"mesh", "zero=9"},
		{"mesh", "q1=6,q2=6"},
		{"mesh", "a=7 hits=0"},
		{"mesh", "a=8,b=8 hits=0"},
		{"mesh", "dark=9"},
		{"mesh", "vip=10 refund=4"},
		{"mesh", "remote_address=192.0.2.1"},
		{"mesh", "own=11 limit=5/6"},
		{"mesh", "b=12,b=12,b=12,b=12"},
		{"malformed", ""},
		{"mesh", "a=13 hits=9"},
		{"mesh", "exempt=1"},
		{"mesh", "poison=1"},
		{"mesh", "vip=14"},
	}
	for range 3 { // a round has the memory of the one before
		s, alone := newService(t, Behaviour{}), newService(t, Behaviour{})
		var log bytes.Buffer
		for _, of := range []*Service{s, alone} {
			of.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
			of.opts.HashAddr = func(dst []byte, value string) []byte {
				if value == "192.0.2.1" {
					panic("poison")
				}
				return append(dst, 'h')
			}
		}
		var calls []*grpcserver.Call
		var want []string
		for _, r := range round {
			call := callOf(t, r.domain, r.descriptors, 1)
			if r.domain == "malformed" {
				call.Message = []byte{0x12, 0x80}
			}
			calls = append(calls, call)
			one := &grpcserver.Call{Message: call.Message}
			grpcserver.Unary(alone.answerCalls).Answer([]*grpcserver.Call{one})
			want = append(want, describeCall(t, one))
		}
		log.Reset()
		grpcserver.Unary(s.answerCalls).Answer(calls)
		for i, call := range calls {
			if got := describeCall(t, call); got != want[i] {
				t.Errorf("%s %s: %s, and alone %s", round[i].domain, round[i].descriptors, got, want[i])
			}
		}
		if n := s.inProgress.Load(); n != 0 {
			t.Errorf("%d descriptors are counted as being decided", n)
		}
		if !strings.Contains(log.String(), "request panicked") {
			t.Errorf("the log has %s", &log)
		}
		if i := slices.Index(want, "OK, OK 93/100"); i < 0 || want[2] != errDomain.Error() || want[17] != errMessage.Error() || want[14] != errInternal.Error() {
			t.Errorf("the answers are %q", want)
		}
		if got, want := s.stats.hits(), alone.stats.hits(); got != want || got == 0 {
			t.Errorf("%d hits are counted, and alone %d", got, want)
		}
	}
}

// hits returns the number of hits that were counted.
func (s *Stats) hits() (n int64) {
	for _, st := range s.rules {
		n += st.total.Load()
	}
	return n
}

// TestRoundLimit: of requests of a round about one counter exactly as many are admitted as its limit has.
func TestRoundLimit(t *testing.T) {
	s := newService(t, Behaviour{})
	var calls []*grpcserver.Call
	for i := range 60 {
		calls = append(calls, callOf(t, "mesh", []string{"a=1", "a=1,zero=1", "a=1,b=full"}[i%3], 1))
	}
	ask(t, s, "b=full", 3)
	grpcserver.Unary(s.answerCalls).Answer(calls)
	admitted := 0
	for i, call := range calls {
		if ok := strings.HasPrefix(describeCall(t, call), "OK"); ok && i%3 > 0 {
			t.Errorf("request %d is admitted", i)
		} else if ok {
			admitted++
		}
	}
	if admitted != 5 {
		t.Errorf("%d are admitted, want 5", admitted)
	}
}

// TestManyRefused: requests that are refused beside too many others leave room for those that fit.
func TestManyRefused(t *testing.T) {
	s := newService(t, Behaviour{})
	large := strings.TrimSuffix(strings.Repeat("vip=1,", limit.MaxDescriptors), ",")
	var calls []*grpcserver.Call
	for range maxInProgress/limit.MaxDescriptors + 2 {
		calls = append(calls, callOf(t, "mesh", large, 1))
	}
	s.inProgress.Store(10)
	calls = append(calls, callOf(t, "mesh", "a=1", 1))
	grpcserver.Unary(s.answerCalls).Answer(calls)
	for i, call := range calls {
		want := i < maxInProgress/limit.MaxDescriptors-1 || i == len(calls)-1
		if got := describeCall(t, call); (got != errBusy.Error()) != want {
			t.Errorf("request %d: %.40s", i, got)
		}
	}
	if n := s.inProgress.Load(); n != 10 {
		t.Errorf("%d descriptors are counted as being decided, want 10", n)
	}
}

// slowStore is a store that answers calls when it may.
type slowStore struct {
	limiter.Store
	may    chan struct{}
	starts atomic.Int64
}

// Start implements limiter.Store.
func (s *slowStore) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) func() bool {
	s.starts.Add(1)
	if s.may == nil {
		panic("no store")
	}
	go func() {
		<-s.may
		done(token)
	}()
	return func() bool {
		s.Take(at, items, calls)
		return false
	}
}

// overStore returns a service with the rules of the tests over a store.
func overStore(t *testing.T, store limiter.Store) *Service {
	s := newService(t, Behaviour{})
	s.opts.Limiter = limiter.New(limiter.Options{Store: store, Timeout: 10 * time.Second}, storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/366d"}))
	return s
}

// TestSlowStore: requests that wait for the store delay no others of their connection, and get their answers.
func TestSlowStore(t *testing.T) {
	store := &slowStore{Store: memory.New(memory.Options{}), may: make(chan struct{})}
	conn, _ := serveGRPC(t, overStore(t, store))
	client := rls.NewRateLimitServiceClient(conn)
	answers := make(chan string, 20)
	for i := range 20 {
		go func() {
			resp, err := client.ShouldRateLimit(context.Background(), request(t, "mesh", fmt.Sprintf("a=1,b=%d", i), 1))
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- describeResponse(resp)
		}()
	}
	for store.starts.Load() == 0 {
		if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if resp, err := client.ShouldRateLimit(t.Context(), request(t, "mesh", "zero=1", 1)); err != nil || resp.GetOverallCode() != rls.RateLimitResponse_OVER_LIMIT {
		t.Errorf("a request that needs no store: %v, %v", resp, err)
	}
	if n := len(answers); n > 0 {
		t.Fatalf("%d answers before that of the store, %s", n, <-answers)
	}
	close(store.may)
	admitted := 0
	for range 20 {
		switch got := <-answers; {
		case strings.HasPrefix(got, "OK, OK"):
			admitted++
		case !strings.HasPrefix(got, "OVER_LIMIT, OVER_LIMIT 0/5, OK 3/3"):
			t.Error(got)
		}
	}
	if admitted != 5 {
		t.Errorf("%d are admitted, want 5", admitted)
	}
}

// TestBrokenStore: a panic of the store is the error of its requests, and counts nothing as being decided.
func TestBrokenStore(t *testing.T) {
	s := overStore(t, &slowStore{Store: memory.New(memory.Options{})})
	for range 2 {
		calls := []*grpcserver.Call{callOf(t, "mesh", "a=1", 1), callOf(t, "mesh", "free=1", 1), callOf(t, "mesh", "vip=1 hits=1", 1)}
		grpcserver.Unary(s.answerCalls).Answer(calls)
		for i, call := range calls {
			want := errInternal.Error()
			if i == 1 { // which needs no store
				want = "OK, OK"
			}
			if got := describeCall(t, call); got != want {
				t.Errorf("call %d: %s, want %s", i, got, want)
			}
		}
	}
	if n := s.inProgress.Load(); n != 0 {
		t.Errorf("%d descriptors are counted as being decided", n)
	}
}

// TestLongRound: the messages of a round are bounded, and further ones are another round.
func TestLongRound(t *testing.T) {
	store := &callCounter{Store: memory.New(memory.Options{})}
	s := overStore(t, &oneByOne{store})
	var calls []*grpcserver.Call
	for i := range 8 {
		calls = append(calls, callOf(t, "mesh", fmt.Sprintf("a=%d%s", i, strings.Repeat("x", maxRound/4)), 1))
	}
	grpcserver.Unary(s.answerCalls).Answer(calls)
	for _, call := range calls {
		if got := describeCall(t, call); got != "OK, OK 4/5" {
			t.Error(got)
		}
	}
	if n := store.calls.Load(); n != 8 {
		t.Errorf("%d calls", n)
	}
}

// oneByOne is a store whose calls are at most three at a time.
type oneByOne struct{ *callCounter }

// Start implements limiter.Store.
func (o *oneByOne) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) func() bool {
	if len(calls) > 3 {
		panic(fmt.Sprintf("%d calls at once", len(calls)))
	}
	return o.callCounter.Start(at, items, calls, done, token)
}

// TestLongAlone: requests that need several calls, and whose messages are long together, share a goroutine.
func TestLongAlone(t *testing.T) {
	s := newService(t, Behaviour{})
	var calls []*grpcserver.Call
	for i := range 8 {
		calls = append(calls, callOf(t, "mesh", fmt.Sprintf("a=%d%s hits=3", i%3, strings.Repeat("x", maxRound/4)), 1))
	}
	grpcserver.Unary(s.answerCalls).Answer(calls)
	for i, call := range calls {
		want := []string{"OK, OK 2/5", "OVER_LIMIT, OVER_LIMIT 0/5"}[min(1, i/3)]
		if got := describeCall(t, call); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
	if n := s.inProgress.Load(); n != 0 {
		t.Errorf("%d descriptors are counted as being decided", n)
	}
}
