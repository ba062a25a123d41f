package envoy

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/limitgate/limitgate/limit"
)

// TestCodec checks that requests with too many parts are refused before they are read, and that others are
// the same as without the check.
func TestCodec(t *testing.T) {
	entries := protowire.AppendTag(nil, 2, protowire.BytesType)
	entries = protowire.AppendBytes(entries, bytes.Repeat([]byte{0x0a, 0}, maxEntries+1))
	for name, message := range map[string][]byte{"descriptors": bytes.Repeat([]byte{0x12, 0}, limit.MaxDescriptors+1), "entries": entries} {
		if req, err := parseRequest(message); !errors.Is(err, errManyInOne) || len(req.GetDescriptors()) > 0 {
			t.Errorf("%s: %d descriptors, %v", name, len(req.GetDescriptors()), err)
		}
	}
	want := &rls.RateLimitRequest{Domain: "mesh", HitsAddend: 7, Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(t, "a=1 b=2 hits=3"), descriptor(t, "c=4 limit=5/6*7")}}
	message, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parseRequest(message); err != nil || !proto.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// TestManyAtOnce checks the bounds of requests that are decided at once, and of clients that are gone.
func TestManyAtOnce(t *testing.T) {
	s := newNative(t, Behaviour{})
	req := &rls.RateLimitRequest{Domain: "mesh", Descriptors: slices.Repeat([]*ratelimit.RateLimitDescriptor{descriptor(t, "tenant=a")}, maxNative+1)}
	if _, err := s.ShouldRateLimit(t.Context(), req); !errors.Is(err, errManyNative) {
		t.Errorf("a native request with too many descriptors: %v", err)
	}
	req.Descriptors = req.GetDescriptors()[:2]
	s.inProgress.Store(maxInProgress - 1)
	if _, err := s.ShouldRateLimit(t.Context(), req); !errors.Is(err, errBusy) {
		t.Errorf("beside too many others: %v", err)
	}
	s.inProgress.Store(maxInProgress - 2)
	if _, err := s.ShouldRateLimit(t.Context(), req); err != nil || s.inProgress.Load() != maxInProgress-2 {
		t.Errorf("in the last room: %v, and then %d in progress", err, s.inProgress.Load())
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ShouldRateLimit(gone, req); status.Code(err) != codes.Canceled {
		t.Errorf("of a client that is gone: %v", err)
	}
}

// FuzzCodec checks that the check of messages refuses none that is valid and small, and never panics.
func FuzzCodec(f *testing.F) {
	f.Add([]byte{0x12, 2, 0x0a, 0})
	f.Add([]byte{0x12, 0x80})
	f.Fuzz(func(t *testing.T, message []byte) {
		var req rls.RateLimitRequest
		plain := proto.Unmarshal(message, &req)
		n := 0
		for _, d := range req.GetDescriptors() {
			n += len(d.GetEntries())
		}
		if _, err := parseRequest(message); plain == nil && len(req.GetDescriptors()) <= limit.MaxDescriptors && n <= maxEntries && err != nil && !errors.Is(err, errManyInOne) {
			t.Errorf("%x: %v", message, err)
		}
	})
}
